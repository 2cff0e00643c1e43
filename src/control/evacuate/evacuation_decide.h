/* Which VMs have to leave a node, and the moves that take them away. Pure.
 *
 * A node is emptied when it carries the drain taint; one VM leaves when the eviction of its pod
 * marked it (status.evacuationNodeName). How many go at a time is left to the limits of the
 * migration controller, and repeated failures to its back-off. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"

struct evacuation_view {
    const char *node;
    bool drain;                                               /* the node carries the drain taint */
    const char *cluster_strategy;                             /* for VMIs that name none; or NULL */
    const struct api_object *vmi;                             /* on that node */
    const struct api_object *const *pods, *const *migrations; /* of this VMI */
    size_t n_pods, n_migrations;
};

/* What to do about one VMI of the node. */
void evacuation_decide(const struct evacuation_view *view, int64_t now_ms, struct plan *ret);

/* Does the node have the taint that asks for it to be emptied? `key` NULL = KubeVirt's. */
bool evacuation_is_drained(const struct api_object *node, const char *key);
