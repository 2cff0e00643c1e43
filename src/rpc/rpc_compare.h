/* XML that came from another host against what was agreed. Pure. */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { RPC_XML_MAX = 512 * 1024 };

struct rpc_agreed;

/* The domain that a move brings here, as this host's launcher would define it. */
int rpc_agreed_new(const char *domain_xml, size_t len, struct rpc_agreed **ret,
                   struct ferry_error *err);
void rpc_agreed_free(struct rpc_agreed *a); /* takes NULL */
/* Of the agreed domain; borrowed. */
const char *rpc_agreed_name(const struct rpc_agreed *a);
const char *rpc_agreed_emulator(const struct rpc_agreed *a);

/* DENIED, with the path of what differs and may not. `xml` need not end with a NUL. */
int rpc_compare_domain(const struct rpc_agreed *a, const char *xml, size_t len,
                       struct ferry_error *err);
/* The same for libvirt's migration cookie, with the domain in it when there is one. */
int rpc_compare_cookie(const struct rpc_agreed *a, const char *cookie, size_t len,
                       struct ferry_error *err);
