#include "handler/owner/owner_decide.h"

#include "api/machine_type.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "handler/move/vmi_edit.h"
#include "handler/owner/guest_interfaces.h"
#include "handler/owner/migratable.h"

enum {
    RECHECK_SOON_MS = 200,
    RECHECK_MS = 2000,
    /* How long a launcher may say "no domain" before it is believed: one that was just restarted
     * has to find its libvirtd first. */
    GONE_AFTER_MS = 10000,
};

static bool launcher_over(const struct launcher_view *l)
{
    return l->reach == LAUNCHER_NO_POD || l->reach == LAUNCHER_ENDED;
}

/* The end of a VMI; the rest of the decision is the caller's. */
static struct owner_decision decide_end(const struct owner_input *in, struct guest_end end)
{
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    struct owner_decision d = {0};

    vmi_edit_phase(&e, end.phase);
    if (end.reason) {
        vmi_edit_str(&e, "/status/reason", NULL, end.reason);
    }
    vmi_edit_condition(&e, CONDITION_READY, false, "GuestNotRunning", end.why);
    news_add_end(&d.news, &end);
    d.patch = vmi_edit_end(&e);
    return d;
}

static struct owner_decision decide_failed(const struct owner_input *in, const char *reason,
                                           const char *why)
{
    return decide_end(in, (struct guest_end){PHASE_FAILED, reason, why});
}

/* True when it is news that a VM which is to be moved on eviction cannot be. */
static bool set_migratable(struct vmi_edit *e, const struct owner_input *in)
{
    const struct api_vmi *vmi = in->vmi;
    const struct api_condition *old =
        api_condition_find(&vmi->conditions, CONDITION_LIVE_MIGRATABLE);
    struct migratable m = migratable_of(vmi, in->host_model_known);

    vmi_edit_condition(e, CONDITION_LIVE_MIGRATABLE, m.yes, m.reason, m.yes ? NULL : m.message);
    vmi_edit_condition(e, CONDITION_STORAGE_LIVE_MIGRATABLE, m.storage,
                       m.storage ? NULL : "NotMigratable", m.storage ? NULL : m.storage_message);
    vmi_edit_str(e, "/status/migrationMethod", vmi->migration_method,
                 m.block ? "BlockMigration" : "LiveMigration");
    vmi_edit_str(e, "/status/migrationTransport", vmi->migration_transport, "Unix");
    return !m.yes && !(old && ferry_streq(old->status, "False")) &&
           ferry_streq(vmi->eviction_strategy, "LiveMigrate");
}

static void set_interfaces(struct vmi_edit *e, const struct api_vmi *vmi)
{
    ferry_cleanup_free char *json = guest_interfaces(vmi);

    if (json) {
        vmi_edit_raw(e, "/status/interfaces", json);
    }
}

/* The machine that the guest has for sure; a launcher of an older version does not say, and then
 * what was written before stays. */
static void set_machine(struct vmi_edit *e, const struct owner_input *in)
{
    const char *type = in->launcher.status->machine;
    ferry_cleanup_free char *json = ferry_asprintf("{\"type\":\"%s\"}", type ? type : "");

    if (api_machine_is_pinned(type) && !ferry_streq(type, in->vmi->machine_type)) {
        vmi_edit_raw(e, "/status/machine", json);
    }
}

/* The guest is there: say so. */
static struct owner_decision decide_running(const struct owner_input *in)
{
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);
    struct owner_decision d = {.again_ms = RECHECK_MS};

    vmi_edit_phase(&e, PHASE_RUNNING);
    vmi_edit_condition(&e, CONDITION_READY, true, NULL, NULL);
    d.not_evictable = set_migratable(&e, in);
    set_interfaces(&e, in->vmi);
    set_machine(&e, in);
    if (api_condition_find(&in->vmi->conditions, CONDITION_SYNCHRONIZED)) {
        vmi_edit_condition(&e, CONDITION_SYNCHRONIZED, true, NULL, NULL);
    }
    news_of_guest(&e, in->launcher.status, &d.news);
    d.patch = vmi_edit_end(&e);
    return d;
}

static struct api_patch *sync_failed_patch(const struct owner_input *in)
{
    struct vmi_edit e = vmi_edit_begin(in->vmi, in->now_ms);

    if (in->sync_error) {
        vmi_edit_condition(&e, CONDITION_SYNCHRONIZED, false,
                           "Synchronizing with the Domain failed.", in->sync_error);
    }
    return vmi_edit_end(&e);
}

static struct owner_decision decide_deleting(const struct owner_input *in)
{
    if (launcher_over(&in->launcher)) {
        return wire_vmi_is_over(in->vmi)
                   ? (struct owner_decision){0}
                   : decide_end(in,
                                (struct guest_end){PHASE_SUCCEEDED, NULL, "the VMI was deleted"});
    }
    if (in->launcher.reach != LAUNCHER_UP) {
        return (struct owner_decision){.again_ms = RECHECK_SOON_MS};
    }
    /* Idempotent for the launcher; it ends by itself when the guest is down. */
    return (struct owner_decision){.action = OWNER_STOP,
                                   .grace_s = in->vmi->grace_s,
                                   .guest_missing = in->gone_since_ms != 0,
                                   .again_ms = RECHECK_SOON_MS};
}

/* A move that was given up may have been quicker: until its target lets go, the guest may be there.
 */
static bool target_may_have_it(const struct api_vmi *vmi)
{
    const struct api_migration_state *m = &vmi->migration;

    return m->present && m->failed && !ferry_str_empty(m->uid) &&
           !ferry_streq(m->target_node, vmi->node_name) && wire_move_is_unconfirmed(vmi) &&
           ferry_streq(api_map_get(&vmi->meta.labels, LABEL_TARGET_NODE_NAME), m->target_node);
}

/* The guest is down, or nobody knows of it. */
static struct owner_decision decide_guest_gone(const struct owner_input *in)
{
    enum launcher_domain domain = in->launcher.status->domain;
    bool left = domain == LAUNCHER_DOMAIN_SHUTOFF &&
                in->launcher.status->domain_reason == LAUNCHER_REASON_MIGRATED;

    if (domain != LAUNCHER_DOMAIN_CRASHED && target_may_have_it(in->vmi)) {
        return (struct owner_decision){.guest_missing = true, .again_ms = RECHECK_SOON_MS};
    }
    if (left) {
        return decide_failed(in, "GuestLost", "the guest left, and did not arrive");
    }
    if (domain == LAUNCHER_DOMAIN_CRASHED || domain == LAUNCHER_DOMAIN_SHUTOFF) {
        return decide_end(in, news_of_end(in->launcher.status));
    }
    if (!in->gone_since_ms || in->now_ms - in->gone_since_ms < GONE_AFTER_MS) {
        return (struct owner_decision){.guest_missing = true, .again_ms = RECHECK_SOON_MS};
    }
    struct owner_decision d =
        decide_failed(in, "GuestLost", "the launcher no longer has the guest");
    d.guest_missing = true;
    return d;
}

/* In post-copy both hosts have a part of the guest. What is left here when the other part is gone
 * can never run again. */
static bool lost_in_post_copy(const struct launcher_status *s)
{
    const struct launcher_migration *m = &s->migration;

    return s->domain == LAUNCHER_DOMAIN_PAUSED && m->role == LAUNCHER_ROLE_SOURCE &&
           m->phase == LAUNCHER_FAILED && wire_reason_of(m->reason_code) == REASON_TARGET_LOST;
}

/* Not started yet; a start that failed leaves a domain that is shut off for no reason of its own.
 */
static bool to_be_started(const struct owner_input *in)
{
    const struct launcher_status *s = in->launcher.status;

    return wire_phase_is(in->vmi->phase, PHASE_SCHEDULED) &&
           (s->domain == LAUNCHER_DOMAIN_NONE || (s->domain == LAUNCHER_DOMAIN_SHUTOFF &&
                                                  (s->domain_reason == LAUNCHER_REASON_FAILED ||
                                                   s->domain_reason == LAUNCHER_REASON_UNKNOWN)));
}

static struct owner_decision decide_up(const struct owner_input *in)
{
    const struct launcher_status *s = in->launcher.status;
    const struct launcher_migration *m = &s->migration;

    if (m->role == LAUNCHER_ROLE_SOURCE && m->phase == LAUNCHER_RUNNING) {
        return (struct owner_decision){
            .action = OWNER_CANCEL, .cancel_uid = m->uid, .again_ms = RECHECK_SOON_MS};
    }
    if (lost_in_post_copy(s)) {
        return decide_failed(in, "GuestLost",
                             "the guest is lost: its target ended while it held part of it");
    }
    if (s->domain == LAUNCHER_DOMAIN_RUNNING || s->domain == LAUNCHER_DOMAIN_PAUSED) {
        return decide_running(in);
    }
    if (to_be_started(in)) {
        return (struct owner_decision){
            .action = OWNER_SYNC, .patch = sync_failed_patch(in), .again_ms = RECHECK_SOON_MS};
    }
    return decide_guest_gone(in);
}

struct owner_decision owner_decide(const struct owner_input *in)
{
    bool scheduled = wire_phase_is(in->vmi->phase, PHASE_SCHEDULED);

    if (in->vmi->meta.deleted_ms) {
        return decide_deleting(in);
    }
    if (wire_vmi_is_over(in->vmi)) {
        /* The guest is over: the launcher has nothing left to do. */
        return in->launcher.reach == LAUNCHER_UP
                   ? (struct owner_decision){.action = OWNER_STOP, .again_ms = RECHECK_MS}
                   : (struct owner_decision){.action = OWNER_NOTHING};
    }
    if (!scheduled && !wire_phase_is(in->vmi->phase, PHASE_RUNNING)) {
        return (struct owner_decision){.action = OWNER_NOTHING};
    }
    switch (in->launcher.reach) {
    case LAUNCHER_UP:
        return decide_up(in);
    case LAUNCHER_ENDED:
        return decide_end(in, news_of_pod_end(&in->launcher));
    case LAUNCHER_NO_POD:
    case LAUNCHER_STARTING:
    case LAUNCHER_SILENT:
        break; /* a pod that is gone for good is the controller's to report */
    }
    return (struct owner_decision){.again_ms = RECHECK_SOON_MS};
}
