/* Moves that bring a changed VM in line with its spec (KubeVirt's workload updater): made when a
 * condition of the VMI asks for one, taken back when it no longer does. Pure.
 *
 * How many go at a time is left to the limits of the migration controller. */
#pragma once

#include "api/object.h"
#include "control/plan.h"

struct update_view {
    const struct api_object *kubevirt; /* or NULL: nothing is moved */
    const struct api_object *vmi;
    const struct api_object *const *migrations; /* of this VMI */
    size_t n_migrations;
};

void update_decide(const struct update_view *view, struct plan *ret);
