/* Moves that a controller makes by itself. Pure. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"

struct auto_move {
    const char *prefix;             /* of its name */
    const char *annotation, *value; /* that says why it was made */
    const char *priority;
    const struct api_object *vmi;
    const struct api_object *const *migrations; /* all of this VMI */
    size_t n_migrations;
};

/* Plans the creation. The name is made from the VMI, the reason and the last move that there was:
 * whoever creates it again for the same reason meets the first. */
void auto_move_create(const struct auto_move *m, struct plan *ret);

/* Is one of them not over? */
bool auto_move_is_open(const struct api_object *const *migrations, size_t n);
