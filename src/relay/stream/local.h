/* The hypervisor's end of a stream: who may open it, the one place of the control channel, and the
 * socket that a target dials. Steps with deadlines on the stream's own thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "relay/common/spec.h"

/* Whether the process at the other end of an accepted unix connection may use it. */
int relay_local_check(const struct relay_spec *spec, int fd, struct ferry_error *err);

/* Waits a moment for a place that is about to become free. `slot` may be NULL: there is no limit.
 */
int relay_local_take_slot(atomic_bool *slot, int stop_fd, struct ferry_error *err);
void relay_local_leave_slot(atomic_bool *slot, bool *has);

/* A non-blocking connection to the unix socket `path`, which is the owner's that `spec` names. */
int relay_local_dial(const struct relay_spec *spec, const char *path, int stop_fd,
                     struct ferry_error *err);
