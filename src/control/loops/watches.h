/* What the controllers watch, and which keys a change puts into which queue. One table; the same is
 * in docs/architecture.md, and a test compares them. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "control/loops/control_metrics.h"
#include "control/loops/loops.h"

enum controller_queue {
    QUEUE_VM,
    QUEUE_VMI,
    QUEUE_MIGRATION,
    QUEUE_POD,
    QUEUE_BINDING,
    QUEUE_NODE,
    QUEUE_EVACUATION,
    QUEUE_UPDATE,
    QUEUE_CLOCK,
    QUEUE_COUNT
};

/* One process' controllers (controller.c). */
struct controller {
    struct cluster cluster;
    bool embedded;
    atomic_bool works; /* the caches are filled: from here on changes are news */
    struct kube_queue *queues[QUEUE_COUNT];
    struct kube_workers *workers[QUEUE_COUNT]; /* or NULL */
    struct loop_migration *migrations;
    struct loop_schedule *schedule;
    struct loop_node *nodes;
    struct loop_update *updates;
    struct control_metrics *metrics;
};

struct watch {
    const char *group, *version, *plural;
    size_t informer; /* offset of the pointer in struct cluster */
    void (*on_delta)(void *ctx, struct api_object *old, struct api_object *now);
    char *(*index)(const struct api_object *o);
    bool optional; /* a cluster may not have it: nobody waits for its cache */
    const char *wakes;
};
extern const struct watch watches_table[];
extern const size_t watches_count;
