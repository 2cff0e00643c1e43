/* What emptying a node means for each virtual machine on it. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"

enum drain_what {
    DRAIN_MOVES,  /* a move is to be asked for; `why` says how its last one failed, if it did */
    DRAIN_MOVING, /* a move of it is under way */
    DRAIN_STAYS,  /* it cannot move; `why` says so */
};

struct drain_item {
    const struct api_object *vmi; /* borrowed */
    enum drain_what what;
    char why[320];
};

/* `ret` has room for `n_vmis`; returns how many are on the node. `nodes` may be NULL: not known. */
size_t drain_plan(const char *node, struct api_object *const *vmis, size_t n_vmis,
                  struct api_object *const *moves, size_t n_moves, struct api_object *const *nodes,
                  size_t n_nodes, struct drain_item *ret);
