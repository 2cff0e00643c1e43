#include "handler/target/target_decide.h"

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "handler/move/move_disks.h"
#include "handler/move/vmi_edit.h"

enum {
    RECHECK_MS = 500,
    /* While the guest is on its way: ownership follows it this quickly. */
    LOOK_RUNNING_MS = 100,
    /* How long completion waits for the source to say that it is through, too. */
    SOURCE_WORD_MS = 5000,
    /* How long the source gets to say how large its disks are; one of an older version never does.
     */
    SOURCE_DISKS_MS = 10000,
    /* How long QEMU gets to notice that its streams are dead. */
    NOTICE_MS = 5000,
    /* A source that reports the failure itself is much faster; this is for one that died. */
    SOURCE_SILENT_MS = 60000,
    /* The same for one that was refused: what it says, if it is honest, is the same. */
    SOURCE_REFUSED_MS = 3000,
};

static struct target_decision step(enum target_action action)
{
    return (struct target_decision){.action = action};
}

/* All over, one way or the other: nothing of the move stays on this node. */
static struct target_decision decide_clean_up(const struct target_input *in)
{
    if (!in->unlistened) {
        return step(TARGET_UNLISTEN);
    }
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    if (in->withdrawn == TARGET_WITHDRAWN) { /* the source may stand still and wait for just this */
        ferry_cleanup_free char *value = wire_move_never_ran_text(in->vmi);

        vmi_edit_annotation(&e, ANNOTATION_TARGET_STATE, value);
    }
    vmi_edit_label(&e, LABEL_TARGET_NODE_NAME, NULL);
    return (struct target_decision){.patch = vmi_edit_end(&e)};
}

/* The guest runs here: this node owns it from now on. */
static struct target_decision take_ownership(const struct target_input *in,
                                             const struct launcher_migration *m)
{
    const struct api_vmi *vmi = in->vmi;
    const struct api_migration_state *ms = &vmi->migration;
    struct vmi_edit e = vmi_edit_begin(vmi, in->now_ms);
    int64_t end_ms = m->end_ms ? m->end_ms : in->now_ms;

    vmi_edit_time_once(&e, VMI_MOVE "startTimestamp", ms->start_ms,
                       m->start_ms ? m->start_ms : end_ms);
    vmi_edit_time_once(&e, VMI_MOVE "endTimestamp", ms->end_ms, end_ms);
    vmi_edit_bool(&e, VMI_MOVE "targetNodeDomainDetected", ms->target_domain_detected, true);
    vmi_edit_time_once(&e, VMI_MOVE "targetNodeDomainReadyTimestamp", ms->target_domain_ready_ms,
                       end_ms);
    vmi_edit_label(&e, LABEL_NODE_NAME, in->node);
    vmi_edit_str(&e, "/status/nodeName", vmi->node_name, in->node);
    vmi_edit_str(&e, "/status/migrationTransport", vmi->migration_transport, "Unix");
    if (in->launcher.pod_uid) {
        ferry_cleanup_free char *pods =
            ferry_asprintf("{\"%s\":\"%s\"}", in->launcher.pod_uid, in->node);

        vmi_edit_raw(&e, "/status/activePods", pods);
    }
    const struct api_condition *paused = api_condition_find(&vmi->conditions, CONDITION_PAUSED);
    if (paused && ferry_streq(paused->reason, "PausedByMigrationMonitor")) {
        vmi_edit_drop_condition(&e, CONDITION_PAUSED); /* the source stopped it, and it runs here */
    }
    return (struct target_decision){
        .patch = vmi_edit_end(&e), .event = TARGET_OWNED, .again_ms = LOOK_RUNNING_MS};
}

/* Whether the source has written that its side is over: until then its hypervisor talks to ours
 * through the relays, and completing would have the source's pod deleted under it. */
static bool source_done(const struct target_input *in)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    const char *text = api_map_get(&in->vmi->meta.annotations, ANNOTATION_PROGRESS);
    struct wire_progress told;

    return in->now_ms - ms->end_ms >= SOURCE_WORD_MS ||
           (wire_progress_of(text, ms->uid, &told) && told.done);
}

/* The move was given up, perhaps by a controller that could not see the source. The streams end
 * first, so that nothing changes any more; then a guest that is here is taken, for it runs nowhere
 * else. Only when there is none, and its launcher has seen to it that none will run (libvirtd may
 * have the word to start it in hand), does this node let go of the move, and the pod may go. */
static struct target_decision decide_given_up(const struct target_input *in,
                                              const struct launcher_migration *m)
{
    bool here = m && m->phase == LAUNCHER_SUCCEEDED;

    if (!in->unlistened) {
        return step(TARGET_UNLISTEN);
    }
    if (here && !ferry_streq(in->vmi->node_name, in->node)) {
        return take_ownership(in, m);
    }
    if (here && !in->finalized) {
        return step(TARGET_FINALIZE);
    }
    bool ended =
        m && m->phase == LAUNCHER_FAILED && !m->never_ran; /* it had been started, and died */
    bool open = !here && !ended && (m || in->launcher.reach == LAUNCHER_SILENT);
    if (open && in->withdrawn == TARGET_NOT_ASKED) {
        return step(TARGET_WITHDRAW);
    }
    if (in->withdrawn == TARGET_KEPT) {
        return (struct target_decision){.again_ms = RECHECK_MS};
    }
    return decide_clean_up(in);
}

/* What will never work ends a move that cannot have begun, all else is said and tried again. */
static struct target_decision decide_trouble(const struct target_input *in, bool may_end)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    const struct move_trouble *t = &in->trouble;

    if (!t->for_good || !may_end) {
        struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);

        move_trouble_say(&e, ANNOTATION_TARGET_TROUBLE, t);
        return (struct target_decision){.patch = vmi_edit_end(&e),
                                        .again_ms = move_trouble_again_ms(t)};
    }
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    ferry_cleanup_free char *what = ferry_asprintf("by the target: %s", t->message);
    ferry_cleanup_free char *text = wire_reason_failure(t->reason, what);

    vmi_edit_bool(&e, VMI_MOVE "failed", ms->failed, true);
    vmi_edit_bool(&e, VMI_MOVE "completed", ms->completed, true);
    vmi_edit_str(&e, VMI_MOVE "failureReason", ms->failure_reason, text);
    vmi_edit_failure(&e, t->reason);
    vmi_edit_time_once(&e, VMI_MOVE "endTimestamp", ms->end_ms, in->now_ms);
    move_trouble_say(&e, ANNOTATION_TARGET_TROUBLE, t);
    return (struct target_decision){.patch = vmi_edit_end(&e), .event = TARGET_REFUSED};
}

static struct target_decision complete(const struct target_input *in)
{
    const struct api_migration_state *ms = &in->vmi->migration;

    if (in->launcher.reach != LAUNCHER_UP) {
        return (struct target_decision){.again_ms = RECHECK_MS};
    }
    if (!in->finalized) {
        return in->trouble.reason ? decide_trouble(in, false) : step(TARGET_FINALIZE);
    }
    if (!source_done(in)) {
        return (struct target_decision){.again_ms = RECHECK_MS};
    }
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    vmi_edit_bool(&e, VMI_MOVE "completed", ms->completed, true);
    return (struct target_decision){.patch = vmi_edit_end(&e), .event = TARGET_COMPLETED};
}

/* The incoming side failed here. The source knows better what became of the guest, and says so;
 * only when it stays silent is the move ended from here. */
static struct target_decision decide_failed(const struct target_input *in,
                                            const struct launcher_migration *m)
{
    const struct api_migration_state *ms = &in->vmi->migration;

    /* The source may stand still and wait for just this. */
    if (m->never_ran && !wire_move_never_ran(in->vmi)) {
        struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);
        ferry_cleanup_free char *value = wire_move_never_ran_text(in->vmi);

        vmi_edit_annotation(&e, ANNOTATION_TARGET_STATE, value);
        return (struct target_decision){.patch = vmi_edit_end(&e), .again_ms = RECHECK_MS};
    }
    bool refused = m->never_ran && wire_reason_of(m->reason_code) == REASON_CONTROL_REFUSED;
    if (!m->end_ms || in->now_ms - m->end_ms < (refused ? SOURCE_REFUSED_MS : SOURCE_SILENT_MS)) {
        return (struct target_decision){.again_ms = RECHECK_MS};
    }
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    enum wire_reason code = wire_reason_of(m->reason_code);

    code = code ? code : REASON_SOURCE_LOST;
    ferry_cleanup_free char *text = wire_reason_failure(
        code, m->failure_reason[0] ? m->failure_reason : "the source is silent");
    vmi_edit_bool(&e, VMI_MOVE "failed", ms->failed, true);
    vmi_edit_bool(&e, VMI_MOVE "completed", ms->completed, true);
    vmi_edit_str(&e, VMI_MOVE "failureReason", ms->failure_reason, text);
    vmi_edit_failure(&e, code);
    vmi_edit_time_once(&e, VMI_MOVE "startTimestamp", ms->start_ms,
                       m->start_ms ? m->start_ms : m->end_ms);
    vmi_edit_time_once(&e, VMI_MOVE "endTimestamp", ms->end_ms, m->end_ms);
    return (struct target_decision){.patch = vmi_edit_end(&e), .event = TARGET_FAILED};
}

static bool ports_equal(const struct api_migration_state *ms, const struct target_relay *r)
{
    if (ms->n_ports != r->n_ports) {
        return false;
    }
    for (size_t i = 0; i < r->n_ports; i++) {
        bool found = false;

        for (size_t k = 0; k < ms->n_ports; k++) {
            found = found || (ms->ports[k].port == r->ports[i].port &&
                              ms->ports[k].logical == r->ports[i].logical);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static char *ports_json(const struct target_relay *r)
{
    struct ferry_buf b = {0};

    ferry_buf_puts(&b, "{");
    for (size_t i = 0; i < r->n_ports; i++) {
        ferry_buf_printf(&b, "%s\"%d\":%d", i ? "," : "", r->ports[i].port, r->ports[i].logical);
    }
    ferry_buf_puts(&b, "}");
    return ferry_buf_take(&b);
}

/* The source waits for fresh streams. */
static bool recovery_asked(const struct target_input *in)
{
    return wire_move_generation(in->vmi, ANNOTATION_RECOVER) >
           wire_move_generation(in->vmi, ANNOTATION_PORTS_GENERATION);
}

/* QEMU is to see by itself that its streams are dead: made to drop them, it may crash. */
static struct target_decision decide_recovery(const struct target_input *in)
{
    bool seen = in->launcher.status->domain_reason == LAUNCHER_REASON_POSTCOPY_FAILED;

    if (seen || (in->asked_ms && in->now_ms - in->asked_ms >= NOTICE_MS)) {
        return step(TARGET_RECOVER);
    }
    return (struct target_decision){.again_ms = LOOK_RUNNING_MS};
}

/* Where the source finds us, and how far the guest has come. */
static struct target_decision report(const struct target_input *in)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    const struct launcher_status *s = in->launcher.status;
    struct vmi_edit e = vmi_edit_begin_move(in->vmi, in->now_ms);
    struct target_decision d = {.again_ms = ms->start_ms ? LOOK_RUNNING_MS : RECHECK_MS};

    if (!ferry_streq(ms->target_address, in->relay.address) || !ports_equal(ms, &in->relay)) {
        ferry_cleanup_free char *ports = ports_json(&in->relay);

        vmi_edit_str(&e, VMI_MOVE "targetNodeAddress", ms->target_address, in->relay.address);
        vmi_edit_raw(&e, VMI_MOVE "targetDirectMigrationNodePorts", ports);
        d.event = TARGET_PUBLISHED;
    }
    if (in->disks) {
        vmi_edit_annotation(&e, ANNOTATION_TARGET_DISKS, in->disks);
    }
    if (recovery_asked(in)) {
        ferry_cleanup_free char *value =
            wire_move_generation_text(in->vmi, wire_move_generation(in->vmi, ANNOTATION_RECOVER));

        vmi_edit_annotation(&e, ANNOTATION_PORTS_GENERATION, value);
    }
    if (s->domain != LAUNCHER_DOMAIN_NONE) {
        vmi_edit_bool(&e, VMI_MOVE "targetNodeDomainDetected", ms->target_domain_detected, true);
    }
    d.patch = vmi_edit_end(&e);
    return d;
}

static struct target_decision decide(const struct target_input *in)
{
    const struct api_migration_state *ms = &in->vmi->migration;
    const struct launcher_migration *m;
    bool owned = ferry_streq(in->vmi->node_name, in->node);

    m = in->launcher.reach == LAUNCHER_UP
            ? launcher_status_migration(in->launcher.status, ms->uid, LAUNCHER_ROLE_TARGET)
            : NULL;
    if (ms->completed && ms->failed) {
        return decide_given_up(in, m);
    }
    if (ms->completed) {
        return decide_clean_up(in);
    }
    if (owned) {
        return complete(in);
    }
    if (m && m->phase == LAUNCHER_SUCCEEDED) {
        return take_ownership(in, m);
    }
    if (in->vmi->meta.deleted_ms && !ms->start_ms) {
        return decide_clean_up(in);
    }
    if (in->launcher.reach == LAUNCHER_SILENT && in->trouble.reason) {
        return decide_trouble(in, false);
    }
    if (in->launcher.reach != LAUNCHER_UP) {
        return (struct target_decision){.again_ms = RECHECK_MS};
    }
    if (!m) {
        /* A cancelled move is not begun any more; the source answers the cancel. */
        if (ms->abort_requested) {
            return (struct target_decision){.action = TARGET_NOTHING};
        }
        if (in->trouble.reason) {
            return decide_trouble(in, !ms->start_ms);
        }
        return move_disks_awaited(in->vmi) && in->now_ms - in->seen_ms < SOURCE_DISKS_MS
                   ? (struct target_decision){.again_ms = LOOK_RUNNING_MS}
                   : step(TARGET_PREPARE);
    }
    if (m->phase == LAUNCHER_FAILED) {
        return decide_failed(in, m);
    }
    /* With another generation this also ends the old streams, as far as the relay held them. */
    if (in->trouble.reason) { /* once published, the source may have begun and not have said so */
        return decide_trouble(in, !ms->start_ms && ferry_str_empty(ms->target_address));
    }
    if (!in->relay.listening) {
        return step(TARGET_LISTEN);
    }
    if (recovery_asked(in) && !in->recovered) {
        return decide_recovery(in);
    }
    return report(in);
}

struct target_decision target_decide(const struct target_input *in)
{
    struct target_decision d = decide(in);

    if (d.action == TARGET_NOTHING && !in->trouble.reason && !in->vmi->migration.completed &&
        in->launcher.reach == LAUNCHER_UP) {
        d.patch = move_trouble_forget(in->vmi, ANNOTATION_TARGET_TROUBLE, d.patch, in->now_ms);
    }
    return d;
}
