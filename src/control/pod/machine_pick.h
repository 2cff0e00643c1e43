/* Which machine type a guest that is about to start gets. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"

/* `asked`: spec.domain.machine.type, or NULL. Of an alias, and of nothing, the newest that every
 * schedulable node reports, so that the guest can go to each of them; what is named with its
 * version stays. Nodes that report nothing do not count. NULL when none reports, or they have none
 * in common: then the QEMU that starts the guest decides, and its node says what it was. The
 * caller's.
 */
char *machine_pick(const char *asked, const struct api_object *const *nodes, size_t n);
