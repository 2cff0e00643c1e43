/* Who may do what (docs/contracts/identity.md). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/owners/field_rules.h"
#include "apiserver/message/route.h"
#include "http/server.h"

enum auth_role {
    AUTH_ANONYMOUS,
    AUTH_NOBODY, /* a good certificate that gives no rights here: a relay's */
    AUTH_PERSON, /* has the rights that bindings give (rbac_view.h) */
    AUTH_VIEWER, /* reads; bindings give more */
    AUTH_NODE,
    AUTH_CONTROLLER,
    AUTH_ADMIN,
    AUTH_ROLE_COUNT
};
const char *auth_role_name(enum auth_role role);

enum { AUTH_GROUPS_MAX = HTTP_GROUPS_MAX + 3 };

struct auth_who {
    enum auth_role role;
    char user[HTTP_NAME_MAX];                    /* "system:node:n1"; "system:anonymous" */
    char node[HTTP_NAME_MAX];                    /* of a node, or "" */
    char groups[AUTH_GROUPS_MAX][HTTP_NAME_MAX]; /* the certificate's, then those that all have */
    size_t n_groups;
};

void auth_identify(const struct http_peer *peer, struct auth_who *ret);
/* Somebody whose rights may come from bindings, and whom the rules for persons are for. */
bool auth_is_person(const struct auth_who *who);

enum auth_answer {
    AUTH_NO,
    AUTH_YES,
    AUTH_IF_OWN, /* ask auth_owns() with the object as stored, auth_overstepped() with the new;
                  * to read it, auth_needs() with the pods of its namespace */
};
/* One row of the table of roles. */
enum auth_verbs { AUTH_READ = 1, AUTH_CREATE = 2, AUTH_CHANGE = 4, AUTH_DELETE = 8 };
struct auth_rule {
    const char *plural;      /* "*" = all but secrets */
    const char *subresource; /* "*" = any, also none */
    enum auth_role role;
    unsigned verbs; /* of enum auth_verbs */
    enum auth_answer answer;
    bool named_as_node; /* the object must bear the node's name; a lease: in kube-node-lease */
    bool claims;        /* only of leases that are claims to addresses */
};
/* The first row that fits decides; no row is a no. The admin, who may do everything, has none. */
const struct auth_rule *auth_rules(size_t *ret_n);

/* By role, verb and address alone. */
enum auth_answer auth_check(const struct auth_who *who, const struct route *route);
/* The stored object belongs to the node: its Node; a pod bound to it; a VMI that runs there or
 * moves from or to it; a claim to an address that it holds. */
bool auth_owns(const struct auth_who *who, const struct api_resource *r, const yyjson_val *stored);
/* The node must see this ConfigMap or Secret, because `pod`, of the same namespace, is bound to it,
 * not over, and has it as a volume. */
bool auth_needs(const struct auth_who *who, const struct api_resource *r, const char *name,
                const yyjson_val *pod);
enum { AUTH_TEXT = FIELD_TEXT };
/* A node reports; it changes neither what was asked for nor what an object hangs on, and of a VMI
 * what the table of fields gives to it. True when it would change more: `ret` is what, and why it
 * may not. */
bool auth_overstepped(const struct auth_who *who, const struct api_resource *r,
                      const yyjson_val *stored, const yyjson_val *changed, char ret[AUTH_TEXT]);
