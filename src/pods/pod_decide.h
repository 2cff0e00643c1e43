/* What to do about one pod: a pure function of the object, its sandbox and the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/kinds.h"
#include "api/wire/wire_phase.h"
#include "pods/sandbox.h"

/* What the agent knows besides the API. */
struct pod_local {
    struct sandbox_probe sandbox;
    bool ready_known, ready; /* whether its launcher answers, once that was asked */
    const char *unsupported; /* why the dialect refuses the pod, or NULL */
    const char *start_error; /* why the last start failed, or NULL */
    int64_t retry_ms;        /* not before this time again */
};

enum pod_action {
    POD_NOTHING,
    POD_START,
    POD_STOP,   /* ask the launcher to end */
    POD_KILL,   /* end everything in the sandbox */
    POD_REMOVE, /* the directory; the object is gone already */
    POD_DELETE, /* the directory, then the object for good */
};

/* What the status is to say; PHASE_NONE = leave it as it is. */
struct pod_report {
    enum wire_phase phase;
    const char *reason;         /* of the pod, or NULL */
    const char *message;        /* or NULL */
    const char *waiting_reason; /* of the container, when it is not started */
    bool running, terminated;   /* of the container */
    bool ready;                 /* it runs, and does its work */
    const char *end_reason;     /* of a terminated container */
    int exit_code;
    int64_t started_ms, ended_ms;
};

struct pod_decision {
    enum pod_action action; /* after the report is written */
    struct pod_report report;
    int64_t again_ms; /* look again at this time even if nothing changes; 0 = no need */
};

/* `pod` is NULL when there is no such object any more. `grace_s` counts from SIGTERM. */
struct pod_decision pod_decide(const struct api_pod *pod, int64_t grace_s,
                               const struct pod_local *local, int64_t now_ms);
