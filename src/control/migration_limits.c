#include "control/migration_limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "control/facts.h"

static int by_order(const void *pa, const void *pb)
{
    const struct limits_entry *a = pa, *b = pb;
    int priority = migration_priority(b->migration) - migration_priority(a->migration);

    if (priority != 0) {
        return priority;
    }
    if (a->migration->meta.created_ms != b->migration->meta.created_ms) {
        return a->migration->meta.created_ms < b->migration->meta.created_ms ? -1 : 1;
    }
    /* Several in one second: any order will do that is always the same. */
    return strcmp(a->migration->meta.uid, b->migration->meta.uid);
}

/* How many of the entries before `end` that count leave from `node`. */
static size_t leaving(const struct limits_entry *entries, const bool *counts, size_t end,
                      const char *node)
{
    size_t n = 0;

    for (size_t i = 0; node && i < end; i++) {
        n += counts[i] && ferry_streq(entries[i].source_node, node);
    }
    return n;
}

struct limits_answer migration_limits_check(struct limits_entry *entries, size_t n,
                                            const struct api_migration *self,
                                            const struct migration_limits *limits)
{
    struct limits_answer answer = {.position = 1};
    ferry_cleanup_free bool *counts = ferry_xcalloc(n + 1, sizeof(bool));
    size_t taken = 0;

    qsort(entries, n, sizeof(*entries), by_order);
    for (size_t i = 0; i < n; i++) {
        counts[i] = entries[i].active;
        taken += entries[i].active;
    }
    answer.running = taken;
    for (size_t i = 0; i < n; i++) {
        const struct limits_entry *e = &entries[i];
        bool is_self = ferry_streq(e->migration->meta.uid, self->meta.uid);

        if (e->active && !is_self) {
            continue;
        }
        /* All entries: active ones behind this one in the order count as well. */
        size_t out = leaving(entries, counts, n, e->source_node);
        bool cluster_full = taken >= limits->cluster;
        bool node_full = out >= limits->outbound_per_node;

        if (is_self) {
            answer.outbound = out;
            answer.start = !cluster_full && !node_full;
            answer.reason = cluster_full ? "ClusterLimit" : node_full ? "OutboundLimit" : NULL;
            break;
        }
        answer.position++;
        if (e->ready && !cluster_full && !node_full) {
            counts[i] = true; /* this place goes to it */
            taken++;
        }
    }
    return answer;
}
