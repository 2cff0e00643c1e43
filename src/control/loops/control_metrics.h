/* Figures of the controllers in Prometheus' text format, under KubeVirt's names where it has them.
 */
#pragma once

#include "api/object.h"
#include "base/str.h"
#include "control/loops/queue_metrics.h"

/* Counts what passes; any thread. */
struct control_metrics;
struct control_metrics *control_metrics_new(void);
void control_metrics_free(struct control_metrics *m); /* takes NULL */
/* A migration changed: the phases that it has entered since go into the histogram. `old` NULL: it
 * is new here, and what it passed before is not counted again. */
void control_metrics_seen(struct control_metrics *m, const struct api_object *old,
                          const struct api_object *now);

struct control_metrics_view {
    const struct api_object *const *migrations, *const *vmis;
    size_t n_migrations, n_vmis;
    const char *cluster_strategy; /* eviction strategy of the KubeVirt object, or NULL */
    size_t outdated;
    const struct queue_metrics *queues;
    size_t n_queues;
    const struct api_object *const *vms;
    size_t n_vms;
};
void control_metrics_write(struct control_metrics *m, const struct control_metrics_view *view,
                           struct ferry_buf *out);
