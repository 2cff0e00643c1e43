#include "pods/pod_decide.h"

#include "api/wire/wire_phase.h"

/* For pods whose object went away while they ran: the site no longer knows them. */
enum { ORPHAN_GRACE_S = 30, EXIT_KILLED = 137 };

/* A running sandbox that should not be: SIGTERM, and SIGKILL when the grace period is over. */
static struct pod_decision end_sandbox(const struct pod_local *l, int64_t grace_s, int64_t now_ms)
{
    int64_t deadline_ms = l->sandbox.stop_ms + grace_s * 1000;

    if (!l->sandbox.stop_ms && grace_s > 0) {
        return (struct pod_decision){.action = POD_STOP, .again_ms = now_ms + grace_s * 1000};
    }
    if (grace_s <= 0 || now_ms >= deadline_ms) {
        return (struct pod_decision){.action = POD_KILL};
    }
    return (struct pod_decision){.action = POD_NOTHING, .again_ms = deadline_ms};
}

/* An agent that was just started believes what the one before it said until it knows better. */
static struct pod_report report_running(const struct api_pod *pod, const struct pod_local *l)
{
    return (struct pod_report){.phase = PHASE_RUNNING,
                               .running = true,
                               .ready = l->ready_known ? l->ready : pod->container_ready,
                               .started_ms = l->sandbox.started_ms};
}

/* A launcher whose QEMU the kernel killed ends in good order; its pod has failed all the same. */
static struct pod_report report_ended(const struct pod_local *l)
{
    bool killed = l->sandbox.kills > 0;
    int code = killed && l->sandbox.exit_code == 0 ? EXIT_KILLED : l->sandbox.exit_code;

    return (struct pod_report){
        .phase = code == 0 ? PHASE_SUCCEEDED : PHASE_FAILED,
        .terminated = true,
        .end_reason = killed      ? "OOMKilled"
                      : code == 0 ? "Completed"
                                  : "Error",
        .exit_code = code,
        .started_ms = l->sandbox.started_ms,
        .ended_ms = l->sandbox.ended_ms,
    };
}

static struct pod_decision decide_orphan(const struct pod_local *l, int64_t now_ms)
{
    if (l->sandbox.state == SANDBOX_RUNNING) {
        return end_sandbox(l, ORPHAN_GRACE_S, now_ms);
    }
    return (struct pod_decision){.action = POD_REMOVE};
}

static struct pod_decision decide_deleting(const struct api_pod *pod, int64_t grace_s,
                                           const struct pod_local *l, int64_t now_ms)
{
    struct pod_decision d = {.action = POD_DELETE};

    if (l->sandbox.state == SANDBOX_RUNNING) {
        return end_sandbox(l, grace_s, now_ms);
    }
    /* The exit code is shown before the object goes: its owner may want to know. */
    if (l->sandbox.state == SANDBOX_ENDED && !wire_pod_is_over(pod)) {
        d.report = report_ended(l);
    }
    return d;
}

static struct pod_decision decide_absent(const struct api_pod *pod, const struct pod_local *l,
                                         int64_t now_ms)
{
    /* It ran before and left no trace: the host was restarted. A guest is never started again
     * behind its owner's back. */
    if (wire_phase_is(pod->phase, PHASE_RUNNING)) {
        return (struct pod_decision){.report = {.phase = PHASE_FAILED,
                                                .reason = "SandboxLost",
                                                .message = "the sandbox is gone: the node was "
                                                           "restarted",
                                                .terminated = true,
                                                .end_reason = "ContainerStatusUnknown",
                                                .exit_code = EXIT_KILLED}};
    }
    if (l->unsupported) {
        return (struct pod_decision){.report = {.phase = PHASE_FAILED,
                                                .reason = "UnsupportedPod",
                                                .message = l->unsupported,
                                                .waiting_reason = "UnsupportedPod"}};
    }
    struct pod_report waiting = {.phase = PHASE_PENDING,
                                 .message = l->start_error,
                                 .waiting_reason =
                                     l->start_error ? "CreateContainerError" : "ContainerCreating"};
    if (now_ms < l->retry_ms) {
        return (struct pod_decision){.report = waiting, .again_ms = l->retry_ms};
    }
    /* A first start is not announced: Running follows within milliseconds. */
    return (struct pod_decision){.action = POD_START};
}

struct pod_decision pod_decide(const struct api_pod *pod, int64_t grace_s,
                               const struct pod_local *l, int64_t now_ms)
{
    if (!pod) {
        return decide_orphan(l, now_ms);
    }
    if (pod->meta.deleted_ms) {
        return decide_deleting(pod, grace_s, l, now_ms);
    }
    if (wire_pod_is_over(pod)) {
        /* Somebody said it is over while it is not: believe it, so that there are never two. */
        return l->sandbox.state == SANDBOX_RUNNING ? end_sandbox(l, grace_s, now_ms)
                                                   : (struct pod_decision){.action = POD_NOTHING};
    }
    switch (l->sandbox.state) {
    case SANDBOX_RUNNING:
        return (struct pod_decision){.report = report_running(pod, l)};
    case SANDBOX_ENDED:
        return (struct pod_decision){.report = report_ended(l)};
    case SANDBOX_NONE:
        break;
    }
    return decide_absent(pod, l, now_ms);
}
