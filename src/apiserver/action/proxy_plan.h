/* What a call of /api/v1/nodes/NAME/proxy/... asks for, who may, and where it goes. Pure. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "apiserver/access/auth.h"
#include "apiserver/message/status.h"

enum { PROXY_NODE_MAX = 254, PROXY_REST_MAX = 1024, PROXY_DIAL_MAX = 80 };

struct proxy_call {
    char node[PROXY_NODE_MAX];
    char rest[PROXY_REST_MAX]; /* path at the node, percent-decoded: "/v1/checks/UID" */
};

/* The path (percent-decoded) is of a node's proxy. */
bool proxy_is_path(const char *path);
int proxy_parse(const char *path, struct proxy_call *ret, struct status *st);
/* Admins everything; viewers, the controller and nodes (of themselves) may read what holds no
 * secret: a guest's console may hold one. */
bool proxy_allowed(const struct auth_who *who, const struct proxy_call *c, bool posts);
/* What a person must hold who is not let in by the above: who may see a guest's console, pause it,
 * plan or follow its moves may do so at its node, too. */
struct proxy_right {
    const char *verb, *group, *resource, *subresource;
    char ns[PROXY_NODE_MAX], name[PROXY_NODE_MAX]; /* of the object, or */
    char uid[PROXY_NODE_MAX];                      /* ... of the migration; "" */
};
/* False: the whole of nodes/proxy is asked for. */
bool proxy_right_of(const struct proxy_call *c, bool posts, struct proxy_right *ret);
/* Where the node's API is: "[ADDRESS]:PORT" to dial, from the Node object. */
int proxy_dial(const yyjson_val *node, const char *name, char dial[PROXY_DIAL_MAX],
               struct status *st);
/* The rest, percent-encoded. Owned by the caller. */
char *proxy_encode(const char *rest);
