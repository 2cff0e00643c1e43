/* Which messages of the source's libvirt reach the target's: those of one move, in their order.
 * Pure: the clock is given. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire/wire_reason.h"
#include "base/error.h"
#include "rpc/rpc_agreement.h"

/* The reason code of whatever is refused. */
#define RPC_REFUSED wire_reason_text(REASON_CONTROL_REFUSED)

enum {
    RPC_CALLS_MAX = 64,     /* of one connection; a move makes about fifteen */
    RPC_KEEPALIVE_MAX = 20, /* a second; libvirt sends one in five seconds */
};

enum rpc_state { RPC_NEW, RPC_OPEN, RPC_PREPARED, RPC_FINISHED, RPC_CLOSED };

/* One connection; zeroed at its beginning. */
struct rpc_session {
    const char *refused; /* why an earlier one of this move was, or NULL; borrowed */
    enum rpc_state state;
    unsigned calls;
    unsigned keepalives; /* in the second that began at */
    int64_t keepalive_ns;
};

/* 0: it may pass, and the session goes on. DENIED: it may not, for a reason that names procedure,
 * parameter or XML path. `message` is a whole one, of `len` bytes. */
int rpc_judge(struct rpc_session *s, const struct rpc_agreement *a, const void *message, size_t len,
              int64_t now_ns, struct ferry_error *err);
