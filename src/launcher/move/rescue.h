/* The last resort of a post-copy that lost its target before the guest ran there.
 *
 * The source has everything, but QEMU has no command that lets it go on: it counts a post-copy as
 * begun when it has sent what the target starts from. What is left is QEMU's gdb stub, which starts
 * vCPUs whatever the migration does. The guest is saved; its QEMU stays in that migration for ever,
 * so it cannot be moved again before it is stopped and started. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "launcher/report/context.h"

/* Lets the guest run. The caller is certain that it runs nowhere else and never will. Idempotent.
 */
int rescue_run(const struct context *c, struct ferry_error *err);
/* A guest that stands still although its migration has failed, by QEMU's own word, runs on;
 * libvirtd is not asked. `*ret_ran`: it did already. */
int rescue_continue(const struct context *c, bool *ret_ran, struct ferry_error *err);
/* Presses the power button of a guest that was rescued: libvirt waits for ever for its move. */
int rescue_power_down(const struct context *c, struct ferry_error *err);
