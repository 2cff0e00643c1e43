/* Rules of admission that look at other objects (facts of KubeVirt's webhooks). Both engines ask
 * them: the embedded API server inside its transaction, on Kubernetes the webhook of
 * ferry-controller. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "base/error.h"

/* What happens to a VMI whose node is emptied: what it says itself, else what the KubeVirt object
 * says (either may be NULL or empty). Where nobody says anything it is moved: a drain must not end
 * guests whose owners never thought of it. */
const char *api_eviction_strategy(const char *own, const char *cluster);

enum api_eviction {
    API_EVICTION_ALLOW,
    API_EVICTION_DENY,
    API_EVICTION_MARK, /* ask the VMI to leave the node, and deny for now */
};
/* May the pod be evicted? `vmi` is the one that the pod's annotation names; NULL: not found.
 * `cluster_strategy` is the KubeVirt object's, or NULL. `why` is set unless it may. */
enum api_eviction api_admit_eviction(const yyjson_val *pod, const yyjson_val *vmi,
                                     const char *cluster_strategy, char *why, size_t why_size);
/* Name of the VMI whose pod it is, or NULL. */
const char *api_admit_vmi_of_pod(const yyjson_val *pod);
/* The descheduler asked for the eviction; the VMI is told so. */
bool api_admit_by_descheduler(const yyjson_val *eviction);

/* May a move of the VMI begin? `vmi` NULL: there is none. `migrations` may be of other VMIs, too.
 * Class DENIED when it may not, with a reason when that is another move (wire_error.h). */
int api_admit_move(const char *vmi_name, const struct api_object *vmi,
                   struct api_object *const *migrations, size_t n_migrations,
                   struct ferry_error *err);
