/* What a node may say of itself and of what runs on it (docs/contracts/identity.md, "What a node
 * may say"): which labels, annotations and figures of its Node, whose events, which addresses, and
 * how much of everything. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "api/ip.h"
#include "apiserver/message/status.h"

/* `object` is what the node wants an object to be, `old` what it is (NULL = there is none). */
int node_rules_check(const struct api_resource *r, const char *node, const yyjson_val *old,
                     const yyjson_val *object, struct status *st);

/* What claims to addresses are judged by. */
struct node_rules_claims {
    const char *const *configs; /* of the networks that the site names for moves */
    size_t n_configs;
    const struct api_ip *held; /* what the node has */
    size_t n_held;
};

int node_rules_claim(const struct api_resource *r, const char *name,
                     const struct node_rules_claims *claims, struct status *st);

/* The largest body that a node sends. */
enum { NODE_RULES_BODY = 512 << 10 };
