/* Which waiting migrations may start: cluster and per-node limits over the queue in order. Pure.
 *
 * Free places go to the waiting in order of priority, then age; one that a node's limit holds back
 * does not hold back those behind it. The answer for a migration depends on the set alone, so
 * workers that ask about different migrations at the same time do not give a place away twice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/object.h"

struct migration_limits {
    unsigned cluster, outbound_per_node; /* KubeVirt: 5 and 2 */
    unsigned inbound_per_node;           /* ours: 2 */
    int64_t bandwidth_per_node;          /* ours: bytes/s of all moves of a node; 0 = no budget */
};

/* One migration that is not final. */
struct limits_entry {
    const struct api_migration *migration;
    const char *source_node; /* that it leaves or will leave; NULL = not known */
    bool active;             /* has a target pod, or its phase says so */
    bool ready;              /* nothing but the limits keeps it waiting */
};

struct limits_answer {
    bool start;
    const char *reason;       /* "ClusterLimit", "OutboundLimit"; static, NULL when it may start */
    size_t position;          /* in the queue, from 1 */
    size_t running, outbound; /* active ones: all, and leaving the same node */
};

/* Sorts `entries`. `self` is one of them. */
struct limits_answer migration_limits_check(struct limits_entry *entries, size_t n,
                                            const struct api_migration *self,
                                            const struct migration_limits *limits);
