/* The disks that a move copies: what the target's launcher has for them reaches the source's in the
 * VMI's annotation ferry.io/target-disks, {"uid", "disks": [{name, bytes}]}. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"

/* The annotation from the launcher's answer to PUT /v1/target/UID; NULL when nothing is copied.
 * Owned by the caller. */
char *move_disks_publish(const char *uid, const char *answer, size_t len);

/* The list that the annotation has for the VMI's move, as JSON; NULL when there is none. Owned by
 * the caller. */
char *move_disks_of(const struct api_vmi *vmi);
