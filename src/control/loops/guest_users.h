/* Gives each VMI a user of its own, which its QEMU runs as. What was given is in
 * status.runtimeUser; this is the table of it, filled from the cache, with what was given just now
 * and does not show there yet. Any thread. */
#pragma once

#include <stdint.h>

#include "api/object.h"

struct guest_users;
struct guest_users *guest_users_new(void);
void guest_users_free(struct guest_users *g); /* takes NULL */

/* Every change of a VMI; `now` NULL = it is gone, and its user free. */
void guest_users_seen(struct guest_users *g, const struct api_object *old,
                      const struct api_object *now);
/* The VMI's user, which nobody else has; 0 when all are taken. The same name has the same one again
 * where it can, so that its images need not change hands. */
int64_t guest_users_give(struct guest_users *g, const struct api_object *vmi);
