/* How far an incoming migration is, as seen from the target. Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_reason.h"
#include "launcher/libvirt/view.h"
#include "launcher/report/state.h"

struct incoming_input {
    struct view domain;
    bool job_over;       /* libvirt has no job on the domain, and said so */
    bool seen;           /* an incoming domain was seen before */
    bool broken;         /* QEMU said for a while that what came in cannot be loaded */
    const char *refused; /* what the source asked for that is not part of a move; NULL = nothing */
};

struct incoming {
    enum launcher_phase phase;
    bool seen;
    const char *failure_reason; /* static, or `refused`; NULL unless failed */
    enum wire_reason reason_code;
};

/* Succeeded: the guest runs, or is paused by its user, and the incoming job is over. Failed: it was
 * coming and is gone, or QEMU gave up on it, of which libvirt does not always take notice; or its
 * source was refused before it ran here. */
struct incoming incoming_decide(const struct incoming_input *in);
