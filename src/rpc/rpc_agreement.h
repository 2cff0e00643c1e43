/* What was agreed for one move: a file that the launcher writes when it prepares a target, and that
 * the filter reads. Pure.
 *
 *     <move>
 *       <connect>qemu:///session</connect>
 *       <memory>unix:///DIR/KEY-49152-source.sock</memory>
 *       <disks>unix:///DIR/KEY-49153-source.sock</disks>
 *       <copied>vda</copied>...
 *       <domain>...</domain>
 *     </move> */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "rpc/rpc_compare.h"

enum { RPC_COPIED_MAX = 16 };

struct rpc_agreement {
    char *connect; /* the driver that the source may open */
    char *memory;  /* where QEMU's stream comes in */
    char *disks;   /* NULL: no disk is copied */
    char *copied[RPC_COPIED_MAX];
    size_t n_copied;
    struct rpc_agreed *domain;
};

/* Texts of `a` to the file, without the domain's; owned by the caller. */
char *rpc_agreement_write(const struct rpc_agreement *a, const char *domain_xml,
                          struct ferry_error *err);
int rpc_agreement_read(const char *text, size_t len, struct rpc_agreement *ret,
                       struct ferry_error *err);
void rpc_agreement_done(struct rpc_agreement *a);
