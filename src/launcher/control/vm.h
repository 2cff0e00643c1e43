/* The ordinary life of the guest: start once, watch, stop. Any thread. */
#pragma once

#include <stdbool.h>

#include "launcher/report/context.h"

struct vm;

struct vm *vm_new(const struct context *c);
void vm_free(struct vm *vm); /* takes NULL */

/* Brings the domain in line with the VMI: defines and starts it unless it ran here before. */
int vm_sync(struct vm *vm, const struct api_vmi *vmi, struct ferry_error *err);

/* Asks for the end: graceful first, forced after `grace_s` (negative: what the VMI says). The
 * request outlives a restart of the launcher. A shorter grace than before counts. */
int vm_stop(struct vm *vm, int64_t grace_s, struct ferry_error *err);
/* Goes on with an asked-for stop; call it every now and then, from one thread. True when a stop was
 * asked for and there is no guest (any more). */
bool vm_tend_stop(struct vm *vm);

/* Stops the guest's vCPUs as its user's wish, or lets them go on; fine when it is so already. Class
 * CONFLICT when no guest is here, or it stands still for a reason that is not its user's. Not while
 * it is being moved (migrate_keep_out()). */
int vm_set_paused(struct vm *vm, bool paused, struct ferry_error *err);
