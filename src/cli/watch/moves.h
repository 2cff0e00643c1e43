/* The list of moves: its columns, and what is left of moves whose objects are gone. */
#pragma once

#include "cli/views/listing.h"

extern const struct listing moves_listing;

/* A cancel deletes the migration object, as KubeVirt's does. Adds to `moves` an object for each
 * cancelled move that is not in it and of which events, or the VM's own account of its last move,
 * still tell. They are made up: for people to read, not for programs. Pure. */
void moves_add_cancelled(struct kube_list *moves, struct api_object *const *vmis, size_t n_vmis,
                         struct api_object *const *events, size_t n_events);
