#include "handler/source/source_decide.h"

#include <stdio.h>
#include <yyjson.h>

#include "api/wire/wire_abort.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_options.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "handler/move/vmi_edit.h"
#include "json/doc.h"

enum {
    RECHECK_MS = 250,
    ASK_AGAIN_MS = 1000,
    LOOK_ARRIVED_MS = 50, /* the target has the guest and waits for our last word */
    PROGRESS_MS = 1000,
    /* libvirt takes a moment to see that the streams work again. */
    RECOVERED_MS = 3000,
    /* A source whose guest is nowhere to be seen waits this long for the target's word. */
    UNDECIDED_MS = 30000,
    MAX_CONNECTIONS = 32,
    ZSTD_CONNECTIONS = 4,
};

static enum wire_reason failure_code(const struct launcher_migration *m)
{
    enum wire_reason code = wire_reason_of(m->reason_code);

    return code ? code : REASON_LIBVIRT_ERROR;
}

/* What the launcher knows about the run, into the VMI. */
static void copy_run(struct vmi_edit *e, const struct launcher_migration *m)
{
    const struct api_migration_state *ms = &e->vmi->migration;

    vmi_edit_time_once(e, VMI_MOVE "startTimestamp", ms->start_ms, m->start_ms);
    if (m->mode != MODE_NONE) {
        vmi_edit_str(e, VMI_MOVE "mode", ms->mode, wire_mode_text(m->mode));
    }
    if (m->abort_status) {
        vmi_edit_str(e, VMI_MOVE "abortStatus", ms->abort_status, wire_abort_text(m->abort_status));
    }
}

/* {sample..., "mode", "uid", "phase", "path", "downtimeMs"} */
static char *progress_text(const struct launcher_migration *m, bool path_away)
{
    struct wire_progress p = {.done = m->phase == LAUNCHER_SUCCEEDED,
                              .path_away = path_away,
                              .downtime_ms = m->downtime_ms};

    wire_progress_figures(&m->sample, &p);
    snprintf(p.uid, sizeof(p.uid), "%s", m->uid);
    snprintf(p.mode, sizeof(p.mode), "%s", wire_mode_text(m->mode));
    return wire_progress_text(&p);
}

/* Before the first bytes a sample says nothing. */
static bool has_figures(const struct launcher_migration *m)
{
    return m->sample.present && m->sample.total_bytes > 0;
}

/* `unsure`: the guest may be on the target all the same, which may take it then. */
static struct source_decision end_move(const struct source_input *in, enum wire_reason code,
                                       const char *reason, const struct launcher_migration *m,
                                       bool unsure)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    ferry_cleanup_free char *text = wire_reason_failure(code, reason);

    if (unsure) {
        vmi_edit_annotation(&e, ANNOTATION_UNCONFIRMED, ms->uid);
    }
    if (m) {
        copy_run(&e, m);
    } else if (ms->abort_requested) {
        vmi_edit_str(&e, VMI_MOVE "abortStatus", ms->abort_status,
                     wire_abort_text(ABORT_SUCCEEDED));
    }
    vmi_edit_bool(&e, VMI_MOVE "failed", ms->failed, true);
    vmi_edit_bool(&e, VMI_MOVE "completed", ms->completed, true);
    vmi_edit_str(&e, VMI_MOVE "failureReason", ms->failure_reason, text);
    vmi_edit_failure(&e, code);
    vmi_edit_time_once(&e, VMI_MOVE "endTimestamp", ms->end_ms,
                       m && m->end_ms ? m->end_ms : in->now_ms);
    if (in->trouble.reason) {
        move_trouble_say(&e, ANNOTATION_SOURCE_TROUBLE, &in->trouble);
    }
    return (struct source_decision){.patch = vmi_edit_end(&e), .failed = code};
}

static struct source_decision fail_move(const struct source_input *in, enum wire_reason code,
                                        const char *reason, const struct launcher_migration *m)
{
    return end_move(in, code, reason, m, false);
}

/* Nothing tells where the guest is. The target may still speak up: its ready time in the VMI ends
 * the wait for good. */
static struct source_decision undecided(const struct source_input *in, const char *reason)
{
    bool arrived = in->vmi->migration.target_domain_ready_ms != 0;

    if (arrived || !in->undecided_since_ms || in->now_ms - in->undecided_since_ms < UNDECIDED_MS) {
        return (struct source_decision){.undecided = true, .again_ms = RECHECK_MS};
    }
    struct source_decision d =
        end_move(in, REASON_SOURCE_LOST, reason, NULL, in->vmi->migration.n_ports > 0);
    d.undecided = true;
    return d;
}

static struct source_decision say_trouble(const struct source_input *in)
{
    struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);

    move_trouble_say(&e, ANNOTATION_SOURCE_TROUBLE, &in->trouble);
    return (struct source_decision){.patch = vmi_edit_end(&e),
                                    .again_ms = move_trouble_again_ms(&in->trouble)};
}

/* Nothing has begun: what will never work ends the move, all else is said and tried again. */
static struct source_decision decide_trouble(const struct source_input *in)
{
    if (in->trouble.for_good && !in->vmi->migration.start_ms) {
        ferry_cleanup_free char *text = ferry_asprintf("by the source: %s", in->trouble.message);

        return fail_move(in, in->trouble.reason, text, NULL);
    }
    return say_trouble(in);
}

/* Nothing is sent before it is known who asked for it. */
static struct source_decision decide_order(const struct source_input *in)
{
    switch (in->order) {
    case SOURCE_ORDER_UNKNOWN:
        return (struct source_decision){.action = SOURCE_ASK};
    case SOURCE_ORDER_NONE: {
        ferry_cleanup_free char *text = ferry_asprintf("by the source: %s", in->order_lacks);

        return fail_move(in, REASON_REFUSED, text, NULL);
    }
    case SOURCE_ORDER_AWAITED:
    case SOURCE_ORDER_GIVEN:
        break;
    }
    return (struct source_decision){.again_ms = ASK_AGAIN_MS};
}

static struct source_decision decide_before_start(const struct source_input *in)
{
    const struct api_migration_state *ms = &in->vmi->migration;

    if (ms->abort_requested) {
        return fail_move(in, REASON_ABORTED, "the migration was cancelled before it began", NULL);
    }
    if (in->vmi->meta.deleted_ms) {
        return fail_move(in, REASON_ABORTED, "the VMI is being deleted", NULL);
    }
    if (!launcher_status_active(in->launcher.status)) {
        return undecided(in, "the guest is not running");
    }
    if (in->trouble.reason) {
        return decide_trouble(in);
    }
    if (in->order != SOURCE_ORDER_GIVEN) {
        return decide_order(in);
    }
    if (ferry_str_empty(ms->target_address) || ms->n_ports == 0) {
        return (struct source_decision){.action = SOURCE_NOTHING}; /* the target's turn */
    }
    return (struct source_decision){.action = in->relay_ready ? SOURCE_START : SOURCE_CONNECT};
}

static bool cancel_wanted(const struct source_input *in, const struct launcher_migration *m)
{
    bool wanted = in->vmi->migration.abort_requested || in->vmi->meta.deleted_ms;

    return wanted && !in->cancelled && m->abort_status != ABORT_UNDER_WAY &&
           m->abort_status != ABORT_SUCCEEDED;
}

/* Post-copy without streams: the guest is on the target and waits for its memory. */
static bool broken(const struct source_input *in, const struct launcher_migration *m)
{
    const struct launcher_status *s = in->launcher.status;

    return m->mode == MODE_POST_COPY && s->domain == LAUNCHER_DOMAIN_PAUSED &&
           s->domain_reason == LAUNCHER_REASON_POSTCOPY_FAILED &&
           in->now_ms - in->recovered_ms >= RECOVERED_MS;
}

/* Fresh streams, the target first. Each failed attempt asks for the next generation: the target
 * must begin anew, too. There is no giving up while both hosts live. */
static struct source_decision decide_broken(const struct source_input *in,
                                            const struct launcher_migration *m)
{
    int64_t asked = wire_move_generation(in->vmi, ANNOTATION_RECOVER);
    int64_t ready = wire_move_generation(in->vmi, ANNOTATION_PORTS_GENERATION);

    if (asked > in->recovered && !in->recover_failed) {
        if (ready != asked) {
            return (struct source_decision){.again_ms = RECHECK_MS};
        }
        return (struct source_decision){.action =
                                            in->relay_ready ? SOURCE_RECOVER : SOURCE_CONNECT};
    }
    struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);
    ferry_cleanup_free char *value = wire_move_generation_text(in->vmi, asked + 1);
    copy_run(&e, m);
    vmi_edit_annotation(&e, ANNOTATION_RECOVER, value);
    return (struct source_decision){.patch = vmi_edit_end(&e), .again_ms = RECHECK_MS};
}

/* The monitor has stopped the guest so that the rest of it can follow; whoever looks at the VMI is
 * told why it stands still. The owner takes it back when the guest runs. Not a word when it was
 * stopped before. */
static bool halted(const struct source_input *in, const struct launcher_migration *m)
{
    return m->mode == MODE_PAUSED && in->launcher.status->domain == LAUNCHER_DOMAIN_PAUSED &&
           !api_condition_find(&in->vmi->conditions, CONDITION_PAUSED);
}

static struct source_decision decide_running(const struct source_input *in,
                                             const struct launcher_migration *m)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    bool arrived = ferry_streq(in->vmi->node_name, ms->target_node);
    struct source_decision d = {.again_ms = arrived ? LOOK_ARRIVED_MS : RECHECK_MS};

    if (cancel_wanted(in, m)) {
        return (struct source_decision){.action = SOURCE_CANCEL};
    }
    if (broken(in, m)) {
        return in->trouble.reason ? say_trouble(in) : decide_broken(in, m);
    }
    /* The target's relay came back with other ports. */
    if (!in->relay_ready && !ferry_str_empty(ms->target_address) && ms->n_ports > 0) {
        return (struct source_decision){.action = SOURCE_CONNECT};
    }
    bool stopped = !arrived && halted(in, m); /* one that has arrived is the target's to tell of */
    struct vmi_edit e =
        stopped ? vmi_edit_begin(in->vmi, in->now_ms) : vmi_edit_begin_move(in->vmi, in->now_ms);
    copy_run(&e, m);
    if (stopped) {
        vmi_edit_condition(&e, CONDITION_PAUSED, true, "PausedByMigrationMonitor",
                           "VMI was paused by the migration monitor");
    }
    if (has_figures(m) && in->now_ms - in->progress_ms >= PROGRESS_MS) {
        ferry_cleanup_free char *json = progress_text(m, in->path_away);

        vmi_edit_annotation(&e, ANNOTATION_PROGRESS, json);
        d.progress = true;
    }
    if (in->trouble.reason) { /* the move is the launcher's by now: it decides how that ends */
        move_trouble_say(&e, ANNOTATION_SOURCE_TROUBLE, &in->trouble);
        d.again_ms = move_trouble_again_ms(&in->trouble);
    }
    d.patch = vmi_edit_end(&e);
    return d;
}

static struct source_decision decide_failed(const struct source_input *in,
                                            const struct launcher_migration *m)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    enum outcome_target target =
        ms->target_domain_ready_ms ? OUTCOME_TARGET_ACTIVE : OUTCOME_TARGET_UNKNOWN;

    /* The launcher was told so, with evidence: nothing is left that could speak up. */
    if (m->mode == MODE_POST_COPY && wire_reason_of(m->reason_code) == REASON_TARGET_LOST) {
        return fail_move(in, failure_code(m), m->failure_reason, m);
    }
    enum outcome_source source = launcher_status_as_source(in->launcher.status);

    /* A guest that runs here was not let go by post-copy, or was taken back from it. */
    switch (api_outcome_of(source, target,
                           m->mode == MODE_POST_COPY && source != OUTCOME_SOURCE_ACTIVE)) {
    case OUTCOME_ON_SOURCE:
        return fail_move(in, failure_code(m),
                         m->failure_reason[0] ? m->failure_reason : "the migration failed", m);
    case OUTCOME_LOST:
        return fail_move(in, REASON_SOURCE_LOST, "the guest is lost", m);
    case OUTCOME_ON_TARGET: /* the target takes it from here */
    case OUTCOME_RESUME_SOURCE:
    case OUTCOME_WAIT:
    case OUTCOME_COUNT:
        break;
    }
    return undecided(in, m->failure_reason[0] ? m->failure_reason : "the guest is lost");
}

/* The guest left. The target completes; here only the last figures are written. */
static struct source_decision decide_succeeded(const struct source_input *in,
                                               const struct launcher_migration *m)
{
    struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);
    ferry_cleanup_free char *json = progress_text(m, in->path_away);

    copy_run(&e, m);
    vmi_edit_annotation(&e, ANNOTATION_PROGRESS, json);
    return (struct source_decision){
        .patch = vmi_edit_end(&e), .progress = true, .again_ms = RECHECK_MS};
}

static struct source_decision decide(const struct source_input *in)
{
    const struct launcher_migration *m;

    switch (in->launcher.reach) {
    case LAUNCHER_NO_POD:
    case LAUNCHER_ENDED:
        return undecided(in, "the source pod is gone");
    case LAUNCHER_SILENT:
        if (in->trouble.reason) {
            return decide_trouble(in);
        }
        return (struct source_decision){.again_ms = RECHECK_MS};
    case LAUNCHER_STARTING:
        return (struct source_decision){.again_ms = RECHECK_MS};
    case LAUNCHER_UP:
        break;
    }
    m = launcher_status_migration(in->launcher.status, in->vmi->migration.uid,
                                  LAUNCHER_ROLE_SOURCE);
    if (!m) {
        return decide_before_start(in);
    }
    switch (m->phase) {
    case LAUNCHER_SUCCEEDED:
        return decide_succeeded(in, m);
    case LAUNCHER_FAILED:
        return decide_failed(in, m);
    case LAUNCHER_PREPARED:
    case LAUNCHER_RUNNING:
    case LAUNCHER_PHASE_COUNT:
        break;
    }
    return decide_running(in, m);
}

struct source_decision source_decide(const struct source_input *in)
{
    struct source_decision d = decide(in);

    if (d.action == SOURCE_NOTHING && !in->trouble.reason && in->launcher.reach == LAUNCHER_UP) {
        d.patch = move_trouble_forget(in->vmi, ANNOTATION_SOURCE_TROUBLE, d.patch, in->now_ms);
    }
    return d;
}

/* Connections beside each other: as many as the VM's annotation asks for. Compression is a matter
 * of these connections, so that asking for it alone brings some. The bits of what is said. */
static unsigned ask_connections(const struct api_vmi *vmi, struct wire_options *o)
{
    const char *text = api_map_get(&vmi->meta.annotations, ANNOTATION_PARALLEL);
    long long n = 0;

    if (!text || ferry_parse_int(text, 0, MAX_CONNECTIONS, &n, NULL) < 0) {
        n = 0;
    }
    o->zstd = ferry_streq(vmi->migration.config.experimental.compression, "zstd");
    o->parallel_connections = n == 0 && o->zstd ? ZSTD_CONNECTIONS : n;
    return (o->zstd ? 1U << WIRE_OPTION_COMPRESSION : 0) |
           (o->parallel_connections > 0 ? 1U << WIRE_OPTION_CONNECTIONS : 0);
}

/* What the policy allows. Absent means "as post-copy" for a disruption: what a policy of an older
 * controller meant. */
static unsigned ask_steps(const struct api_migration_config *c, struct wire_options *o)
{
    o->allow_auto_converge = c->allow_auto_converge;
    o->allow_post_copy = c->allow_post_copy;
    o->allow_workload_disruption =
        c->has_allow_workload_disruption ? c->allow_workload_disruption : c->allow_post_copy;
    o->unsafe = c->unsafe_migration_override;
    o->bandwidth_bytes_per_s = c->bandwidth_bytes_per_s;
    return 1U << WIRE_OPTION_AUTO_CONVERGE | 1U << WIRE_OPTION_POST_COPY |
           1U << WIRE_OPTION_DISRUPTION | 1U << WIRE_OPTION_UNSAFE |
           (c->bandwidth_bytes_per_s > 0 ? 1U << WIRE_OPTION_BANDWIDTH : 0);
}

char *source_options(const struct api_vmi *vmi, int64_t path_bytes_per_s)
{
    const struct api_migration_config *c = &vmi->migration.config;
    struct wire_options o = {.path_bytes_per_s = path_bytes_per_s};
    unsigned said = ask_connections(vmi, &o);

    if (c->present) {
        said |= ask_steps(c, &o);
    }
    if (path_bytes_per_s > 0) {
        said |= 1U << WIRE_OPTION_PATH;
    }
    return wire_options_request(&o, said, c->present ? c->raw : NULL);
}
