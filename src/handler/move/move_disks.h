/* The disks that a move copies: how large they are on one side reaches the other in the VMI's
 * annotations ferry.io/source-disks and ferry.io/target-disks, {"uid", "disks": [{name, bytes}]}.
 * First the source says what it has, where volumes are exchanged for others: the target makes the
 * images that are missing. Then the target says what there is: one that is too small is refused
 * before a byte is copied. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/kinds.h"

/* The annotation from a launcher's answer; NULL when nothing is copied. Owned by the caller. */
char *move_disks_publish(const char *uid, const char *answer, size_t len);

/* The list that the annotation has for the VMI's move, as JSON; NULL when there is none. Owned by
 * the caller. */
char *move_disks_of(const struct api_vmi *vmi, const char *annotation);

/* Whether the source has to say, and has not: volumes are exchanged, and their images may have to
 * be made. */
bool move_disks_awaited(const struct api_vmi *vmi);
