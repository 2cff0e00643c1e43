/* Pod eviction (policy/v1): a pod with a machine in it is not deleted, its machine is asked to
 * leave; everything else is deleted. */
#pragma once

#include "apiserver/request.h"

enum eviction_answer {
    EVICTION_ALLOW,
    EVICTION_DENY,
    EVICTION_MARK, /* ask the VMI to leave the node, and deny for now */
};
/* Pure. `vmi` NULL: not found. `cluster_strategy` (or NULL) counts where the VMI names none. `why`
 * is set unless it is allowed. */
enum eviction_answer eviction_decide(const yyjson_val *pod, const yyjson_val *vmi,
                                     const char *cluster_strategy, char *why, size_t why_size);

/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int eviction_serve(struct request *r);
