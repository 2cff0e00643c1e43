/* Going on with a post-copy whose streams broke: over fresh ones, driven through QEMU's own
 * monitor.
 *
 * libvirt's way (VIR_MIGRATE_POSTCOPY_RESUME) crashes the target's libvirtd in 11.2 and 11.3; QEMU
 * does the same on request, and libvirt follows its events. The target has to be told first. Any
 * thread. */
#pragma once

#include "launcher/report/context.h"

/* Recovers the current migration, which must be `uid` and have the role that the state file says.
 * `unix_path` is the memory channel's socket in the pod: the target's QEMU listens there, the
 * source's connects. Idempotent; class RETRY when QEMU does not see its streams dead yet or the new
 * ones broke at once. */
int recover_run(const struct context *c, const char *uid, enum launcher_role role,
                const char *unix_path, struct ferry_error *err);
