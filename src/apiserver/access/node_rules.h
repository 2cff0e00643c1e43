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

/* A claim to an address: `configs` are those of the networks that the site names for moves, `held`
 * is how many addresses the node has. */
int node_rules_claim(const struct api_resource *r, const char *name, const char *const *configs,
                     size_t n, size_t held, struct status *st);

/* The largest body that a node sends. */
enum { NODE_RULES_BODY = 512 << 10 };
