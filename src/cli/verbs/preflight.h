/* What can be said about a move before it is asked for. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "base/error.h"

/* Ready, and takes virtual machines. */
bool preflight_usable(const struct api_node *n);

/* Fails when the move can never start: the VM does not run, it is there already, there is no node
 * to move to. `nodes` may be NULL: not known. `to` is the node asked for, or NULL. */
int preflight_check(const struct api_vmi *vm, struct api_object *const *nodes, size_t n,
                    const char *to, struct ferry_error *err);
