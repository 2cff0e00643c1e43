/* Moves and evictions that bring running VMs in line with what is wanted now (KubeVirt's workload
 * updater): a change of the VM that takes a move, or a launcher of an older image. Pure.
 *
 * One pass looks at all VMs. Moves are made as many as the cluster's limit has room for, those that
 * a user waits for first; VMs that cannot move are evicted in batches. A move whose reason went
 * away is taken back while its target has no guest. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"

struct update_vm {
    const struct api_object *vmi, *pod;         /* pod: that has the VM, or NULL */
    const struct api_object *const *migrations; /* of this VMI */
    size_t n_migrations;
};

struct update_view {
    const struct api_object *kubevirt; /* or NULL: nothing is moved or evicted */
    const char *launcher_image;        /* that new launchers get */
    const struct update_vm *vms;
    size_t n;
    size_t room;              /* moves that the cluster's limit leaves room for */
    int64_t last_eviction_ms; /* of the last batch; 0 = none */
};

struct update_result {
    size_t outdated; /* VMs with an older launcher */
    bool evicts;
};

/* Plans the writes; `again_ms` when something is left to do. */
void update_decide(const struct update_view *view, int64_t now_ms, struct plan *ret,
                   struct update_result *result);

/* Can anything have to be done about this VM? Cheap: no look at its pods or migrations. */
bool update_is_wanted(const struct api_vmi *vmi);
/* Is its launcher of another image than the one that new ones get? */
bool update_is_outdated(const struct api_object *vmi, const struct api_object *pod,
                        const char *launcher_image);
