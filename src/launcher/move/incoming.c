#include "launcher/move/incoming.h"

#include <stddef.h>

#include "rpc/rpc_judge.h"

struct incoming incoming_decide(const struct incoming_input *in)
{
    const struct view *d = &in->domain;

    if (in->refused && (!view_active(d) || (d->between && !d->postcopy))) {
        return (struct incoming){
            .phase = LAUNCHER_FAILED,
            .seen = in->seen || view_active(d),
            .reason_code = REASON_CONTROL_REFUSED,
            .failure_reason = in->refused,
        };
    }
    if (!view_active(d)) {
        if (!in->seen) {
            return (struct incoming){.phase = LAUNCHER_PREPARED};
        }
        return (struct incoming){
            .phase = LAUNCHER_FAILED,
            .seen = true,
            .reason_code = REASON_TARGET_LOST,
            .failure_reason = "the incoming guest went away before it ran here",
        };
    }
    if (in->broken && d->between) {
        return (struct incoming){
            .phase = LAUNCHER_FAILED,
            .seen = true,
            .reason_code = REASON_TARGET_LOST,
            .failure_reason = "QEMU could not load the incoming guest",
        };
    }
    bool arrived =
        !d->between && !d->postcopy; /* while QEMU waits for the stream it is paused on its way */
    return (struct incoming){
        .phase = arrived && in->job_over ? LAUNCHER_SUCCEEDED : LAUNCHER_RUNNING,
        .seen = true,
    };
}
