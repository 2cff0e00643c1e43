/* What the XML of a domain, and libvirt's migration cookie, may hold when they come from another
 * host: a table of paths. What is not in it is refused. Pure.
 *
 * A path is of names from the root's children on ("devices/disk/source/@file"), with `*` for one
 * name; what begins with an @ is an attribute. */
#pragma once

#include <stdbool.h>

enum rpc_value {
    RPC_EMPTY,  /* an element without text */
    RPC_FLAG,   /* likewise, whose being there says something: there when it was agreed */
    RPC_SAME,   /* as agreed, and there when it was agreed */
    RPC_EQUAL,  /* as agreed, or missing */
    RPC_MAC,    /* RPC_SAME in either case of its letters */
    RPC_SIZE,   /* RPC_SAME for a number of bytes, in the unit of attribute "unit" */
    RPC_AMOUNT, /* RPC_SIZE, or missing */
    RPC_TYPE,   /* RPC_SAME for a machine type: a version where its alias was agreed */
    RPC_NUMBER, /* any, decimal or hexadecimal */
    RPC_WORD,   /* any name: letters, digits and some signs, none of which QEMU takes for more */
    RPC_UUID,
    RPC_LABEL,      /* of a security driver */
    RPC_ONE_OF,     /* one of the rule's words */
    RPC_SAME_OR_OF, /* RPC_SAME; where nothing was agreed, one of the rule's words */
};

struct rpc_rule {
    const char *path;
    enum rpc_value value;
    const char *words; /* separated by blanks */
};

/* NULL: may not be there. */
const struct rpc_rule *rpc_rules_domain(const char *path);
const struct rpc_rule *rpc_rules_cookie(const char *path);

/* How elements of the same name are told from each other: by this attribute (of this child). */
struct rpc_key {
    const char *path, *child, *attribute; /* `child` may be NULL */
    bool more;                            /* there may be some that were not agreed */
};
const struct rpc_key *rpc_rules_key(const char *path);
