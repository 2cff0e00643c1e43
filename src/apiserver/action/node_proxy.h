/* The way to what only a node knows: GET of /api/v1/nodes/NAME/proxy/... is asked of that node's
 * handler (docs/contracts/node-api.md) and its answer passed on as it comes. */
#pragma once

#include "apiserver/request/request.h"
#include "tls/pki.h"

struct node_proxy;

/* `ca`, which must outlive it, gives the certificate with which nodes are called. */
struct node_proxy *node_proxy_new(const struct pki_ca *ca);
/* When no call is under way. Takes NULL. */
void node_proxy_free(struct node_proxy *p);

/* Before the body is read: whether the caller may send one. Fills r->st and returns -1 if not. */
int node_proxy_check(struct request *r);
/* Any thread. */
int node_proxy_serve(struct request *r, struct node_proxy *p);

/* POST of `rest`, without a body, to a node, for a call that was allowed already. 0 when the node
 * did it; else -1, and r->st says what the node said. Any thread. */
int node_proxy_tell(struct request *r, struct node_proxy *p, const char *node, const char *rest);
