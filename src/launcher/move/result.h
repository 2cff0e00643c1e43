/* How a migration ended, as seen from the source. Pure.
 *
 * libvirt's return code alone decides nothing: a call can fail while the guest arrives (its
 * connection to us broke, or the launcher was restarted), and an abort can race with success. What
 * counts is where the guest is now. */
#pragma once

#include <stdbool.h>

#include "api/outcome.h"
#include "api/wire/wire_reason.h"
#include "launcher/libvirt/view.h"
#include "launcher/report/state.h"

struct result_input {
    struct view domain;
    bool job_active; /* libvirt still works on the outgoing migration */
    bool rescued;    /* the guest was taken back from post-copy; libvirt's job never ends then */
    bool call_known; /* the call's return was seen; false after a restart of the launcher */
    bool call_ok;
    int libvirt_code;         /* virErrorNumber when it failed */
    enum wire_reason refused; /* it was not made, `text` says why; or none */
    const char *text;         /* its message, or NULL */
    enum state_abort abort;
    const char *abort_detail;
    bool abort_accepted;
    bool postcopy;              /* the move has switched to post-copy */
    bool suspended;             /* we paused the guest for the move */
    bool incomplete;            /* the guest stands still, and QEMU did not send all of it */
    enum outcome_target target; /* what the handler knows of the other side; UNKNOWN mostly */
};

struct result {
    bool decided; /* false: look again later */
    enum launcher_phase phase;
    enum wire_abort abort_status;
    char failure_reason[512]; /* "" on success */
    const char *reason_code;  /* of docs/contracts/reasons.md; "" on success */
    bool resume_source;       /* undecided: nobody else can have the guest, let it run here */
    bool rescue_source;       /* likewise, out of a post-copy (rescue.h) */
    bool stop_source;         /* decided: the target has the guest, what is left here must go */
};

/* Whether QEMU's own word for an outgoing migration says that it did not send all that the target
 * needs to run the guest. `version` is libvirt's number for QEMU's version, 0 = not known. */
bool result_never_sent(const char *status, bool postcopy, unsigned long version);

void result_decide(const struct result_input *in, struct result *ret);
