/* The claims of a pod that looks for a node. Pure. */
#pragma once

#include "control/schedule/schedule_pick.h"

enum schedule_claim_state {
    SCHEDULE_CLAIM_BOUND,   /* `volume` says which nodes */
    SCHEDULE_CLAIM_WAITING, /* gets a volume that the node can reach when the pod has a node */
};

struct schedule_claim {
    const struct api_object *claim, *volume; /* volume: NULL when it has none (yet) */
    enum schedule_claim_state state;
};

struct schedule_claims {
    struct schedule_claim *items;
    size_t n;
    char why[256]; /* not empty: no node will do, and this is why */
};

void schedule_claims_make(struct schedule_claims *c, const struct schedule_view *view);
void schedule_claims_done(struct schedule_claims *c);
/* NULL, or why the node cannot have the pod's volumes (static). */
const char *schedule_claims_check(const struct schedule_claims *c, const struct schedule_view *view,
                                  const struct api_node *node);
/* The volumes that waiting claims get on that node, by claim (others NULL): the smallest that fits
 * and that no claim before takes. False when one gets none; then `ret` is of no use. */
bool schedule_claims_assign(const struct schedule_claims *c, const struct schedule_view *view,
                            const struct api_node *node, const struct api_object **ret);
