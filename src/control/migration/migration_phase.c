/* One function per phase: what takes a migration to the next one. */
#include <stdio.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/str.h"
#include "control/migration/migration_case.h"
#include "control/migration/migration_patch.h"
#include "control/plan/facts.h"
#include "kube/queue.h"

/* Another migration's, which still exists and is not over. */
static bool state_belongs_to_other(const struct migration_case *d)
{
    const struct migration_view *v = d->view;

    if (!vmi_is_migrating(d->vmi) || migration_handed_off(d)) {
        return false;
    }
    for (size_t i = 0; i < v->n_migrations; i++) {
        if (ferry_streq(v->migrations[i]->meta->uid, d->vmi->migration.uid)) {
            return !wire_migration_is_over(&v->migrations[i]->u.migration);
        }
    }
    return false;
}

/* Made only from what is known of the source's CPU: a guest that lands on another kind breaks. */
static void create_target_pod(struct migration_case *d)
{
    const struct migration_view *v = d->view;
    const struct pod_request request = {
        .vmi = d->vmi,
        .settings = &v->settings->pod,
        .storage = &v->storage,
        .migration = d->m,
        .source_pod = &v->source_pod->u.pod,
        .source_node = v->source_node ? &v->source_node->u.node : NULL,
    };
    ferry_cleanup_free char *name = pod_name(d->vmi, d->m);
    const char *why = NULL;

    if (!pod_target_cpu_is_known(&request, &why)) {
        migration_fail(d, REASON_CPU_INCOMPATIBLE, "%s", why);
        return;
    }
    plan_create(d->plan, API_KIND_POD, d->m->meta.namespace_, name, pod_render(&request));
    plan_event(d->plan, d->view->migration, KUBE_EVENT_NORMAL, "SuccessfulCreate",
               "Created migration target pod %s", name);
}

/* Says from here on what is left: the VMI's account takes over at hand-off. */
static void enter_scheduling(struct migration_case *d)
{
    struct api_patch *p = migration_phase_patch(d, PHASE_SCHEDULING);
    ferry_cleanup_free char *source = migration_state_source(d->view);

    api_patch_add_raw(p, "/status/migrationState", source);
    plan_patch_status(d->plan, d->view->migration, p);
}

/* Let in at last, and what a node could not do is done. */
static void forget_refusal(const struct migration_case *d, struct api_patch *p)
{
    static const struct plan_condition none[] = {
        {.type = CONDITION_QUOTA}, {.type = CONDITION_REFUSED}, {.type = CONDITION_NODE_TROUBLE}};

    if (migration_is_refused(d->m) ||
        api_condition_find(&d->m->conditions, CONDITION_NODE_TROUBLE)) {
        plan_set_conditions(p, d->view->migration, &d->m->conditions, none, 3, d->now_ms);
    }
}

/* ---- hand-off --------------------------------------------------------------------------------
 */

static bool both_sides_are_ready(const struct migration_case *d)
{
    return pod_is_ready(d->target) && !d->vmi->meta.deleted_ms &&
           vmi_has_phase(d->vmi, PHASE_RUNNING) && d->view->source_pod &&
           !vmi_is_migrating(d->vmi) && !vmi_awaits_target(d->vmi);
}

/* What was there when the target pod was made may have gone since. */
static void wait_for_both_sides(struct migration_case *d)
{
    int64_t since = migration_phase_since(d->m, PHASE_SCHEDULED);
    bool target = pod_is_ready(d->target);

    migration_wait_since(d, since,
                         &(struct migration_wait){
                             .reason = target ? REASON_SOURCE_BUSY : REASON_TARGET_POD_PENDING,
                             .message = target ? "the VM cannot be handed over for now"
                                               : "the target pod is not ready any more",
                             .blocker = target ? d->m->vmi_name : d->target->meta.name,
                             .deadline_ms = since + d->view->settings->pending_timeout_s * 1000});
}

static void wait_for_target_node(struct migration_case *d)
{
    const struct migration_view *v = d->view;

    migration_wait_for(
        d, &(struct migration_wait){
               .reason = v->limits.enter_reason ? v->limits.enter_reason : REASON_INBOUND_LIMIT,
               .message = "the target node takes no more moves for now",
               .blocker = v->limits.enter_blocker ? v->limits.enter_blocker : d->target->node_name,
               .check_ms = migration_retry_ms(d),
               .deadline_ms = migration_phase_since(d->m, PHASE_SCHEDULED) +
                              v->settings->pending_timeout_s * 1000});
}

static void hand_off(struct migration_case *d)
{
    const struct migration_view *v = d->view;
    const char *policy = NULL;
    ferry_cleanup_free char *configuration = migration_configuration(d, &policy);

    if (!configuration) {
        return;
    }
    plan_patch_status(d->plan, v->vmi, migration_patch_hand_off(v, policy, configuration));
    plan_event(d->plan, v->migration, KUBE_EVENT_NORMAL, "SuccessfulHandOver",
               "Handed over to the nodes %s and %s", d->vmi->node_name, d->target->node_name);
}

/* The target pod is there. Whatever can be done at once is: the phases that this passes are written
 * together when the nodes have the VM, and one by one only where the move has to stay in them. */
static bool go_on_with_target(struct migration_case *d)
{
    bool scheduled = migration_in_phase(d, PHASE_SCHEDULED);

    if (!scheduled && !pod_is_ready(d->target)) {
        if (!migration_in_phase(d, PHASE_SCHEDULING)) {
            enter_scheduling(d);
        }
        return true;
    }
    if (both_sides_are_ready(d) && ferry_streq(d->target->node_name, d->vmi->node_name)) {
        migration_delete_target_pod(d);
        migration_fail(d, REASON_UNSCHEDULABLE, "the target pod is on the VM's own node %s",
                       d->vmi->node_name);
    } else if (both_sides_are_ready(d) && d->view->limits.enter) {
        hand_off(d);
    } else if (!scheduled) {
        struct api_patch *p = migration_phase_patch(d, PHASE_SCHEDULED);

        forget_refusal(d, p);
        plan_patch_status(d->plan, d->view->migration, p);
    } else if (both_sides_are_ready(d)) {
        wait_for_target_node(d);
    } else {
        wait_for_both_sides(d);
    }
    return true;
}

/* ---- phases ----------------------------------------------------------------------------------
 */

/* Before a gate that is closed; one that will stay closed ends the move. */
static void wait_at(struct migration_case *d, const struct migration_gate *gate)
{
    const struct migration_wait *w = &gate->wait;

    if (gate->for_good) {
        migration_fail(d, w->reason, "%s", w->message);
        return;
    }
    bool written = migration_wait_for(d, w);
    if (w->reason == REASON_BACK_OFF) {
        plan_again(d->plan, w->deadline_ms - d->now_ms);
        if (written) {
            plan_event(d->plan, d->view->vmi, KUBE_EVENT_WARNING, "MigrationBackoff",
                       "backoff migrating vmi %s/%s", d->m->meta.namespace_, d->m->vmi_name);
        }
    }
}

static bool phase_pending(struct migration_case *d)
{
    const struct api_condition *c =
        api_condition_find(&d->vmi->conditions, CONDITION_LIVE_MIGRATABLE);
    struct migration_gate gate;

    if (d->target) {
        return go_on_with_target(d);
    }
    if (c && ferry_streq(c->status, "False")) {
        migration_fail(d, REASON_DEVICE_NOT_MIGRATABLE, "the VM cannot be moved: %s: %s",
                       c->reason ? c->reason : "", c->message ? c->message : "");
        return true;
    }
    if (!migration_gates_open(d, &gate)) {
        wait_at(d, &gate);
        return true;
    }
    const char *policy = NULL;
    ferry_cleanup_free char *configuration = migration_configuration(d, &policy);
    if (configuration) {
        create_target_pod(d);
    }
    return true;
}

static bool phase_new(struct migration_case *d)
{
    struct api_patch *p = api_patch_new();

    plan_add_finalizer(p, d->view->migration, FINALIZER_MIGRATION);
    plan_set_label(p, d->view->migration, LABEL_VMI_NAME, d->m->vmi_name);
    if (!api_patch_empty(p)) {
        plan_patch(d->plan, d->view->migration, p);
        return true; /* the phase follows when this is seen */
    }
    api_patch_free(p);
    if (state_belongs_to_other(d)) {
        migration_fail(d, REASON_SOURCE_BUSY, "another migration of the VM is in progress");
        return true;
    }
    if (!d->target && !migration_gates_open(d, NULL)) {
        migration_move_to(d, PHASE_PENDING);
        return true;
    }
    return phase_pending(d); /* one that need not wait does not say that it waits */
}

static bool phase_scheduling(struct migration_case *d)
{
    return d->target ? go_on_with_target(d) : true;
}

static bool phase_scheduled(struct migration_case *d)
{
    if (migration_past(d, migration_phase_since(d->m, PHASE_SCHEDULED),
                       d->view->settings->pending_timeout_s)) {
        migration_delete_target_pod(d);
        migration_fail(d, REASON_PENDING_TIMEOUT, "the VM could not be handed over in time");
        return true;
    }
    return go_on_with_target(d);
}

/* A change that the move was made for is in effect when the target says so; as it may never, not
 * for ever. */
static bool change_is_pending(struct migration_case *d)
{
    const struct api_conditions *c = &d->vmi->conditions;
    bool pending = api_condition_find(c, CONDITION_VCPU_CHANGE) ||
                   api_condition_true(c, CONDITION_MEMORY_CHANGE) ||
                   api_condition_true(c, CONDITION_MIGRATION_REQUIRED);

    return pending && d->state->end_ms &&
           !migration_past(d, d->state->end_ms, d->view->settings->finish_timeout_s);
}

/* How far the nodes have come. */
static enum wire_phase phase_on_nodes(struct migration_case *d)
{
    const struct api_migration_state *s = d->state;

    if (s->completed) {
        return change_is_pending(d) ? PHASE_RUNNING : PHASE_SUCCEEDED;
    }
    if (s->start_ms) {
        return PHASE_RUNNING;
    }
    return ferry_str_empty(s->target_address) ? PHASE_PREPARING_TARGET : PHASE_TARGET_READY;
}

static void succeed(struct migration_case *d)
{
    struct api_patch *p = migration_phase_patch(d, PHASE_SUCCEEDED);

    migration_copy_state(d, p, NULL);
    forget_refusal(d, p);
    plan_patch_status(d->plan, d->view->migration, p);
    plan_event(d->plan, d->view->migration, KUBE_EVENT_NORMAL, "SuccessfulMigration",
               "The VM runs on %s", d->vmi->node_name ? d->vmi->node_name : "");
}

/* Nothing to wait for any more. Moves that go on quickly take the note back with their end. */
static void forget_wait(struct migration_case *d, bool just_moved_on)
{
    enum { SHORT_MS = 1000 };

    if (!api_map_get(&d->m->meta.annotations, ANNOTATION_QUEUE)) {
        return;
    }
    int64_t left = migration_phase_since(d->m, wire_phase_of(d->m->phase)) + SHORT_MS - d->now_ms;
    if (just_moved_on || (left > 0 && left <= SHORT_MS)) {
        plan_again(d->plan, SHORT_MS);
    } else {
        migration_set_queue_text(d, NULL);
    }
}

/* From hand-off on the phase follows what the nodes write. It never goes back: a node that
 * publishes anew does not undo a start. */
static bool phase_handed_off(struct migration_case *d)
{
    enum wire_phase next = phase_on_nodes(d);
    bool waits = d->view->source_silent_ms || d->view->target_silent_ms;
    bool goes_on = next > wire_phase_of(d->m->phase);

    if (next == PHASE_SUCCEEDED) {
        succeed(d);
        return true;
    }
    if (goes_on) {
        struct api_patch *p = migration_phase_patch(d, next);

        forget_refusal(d, p);
        plan_patch_status(d->plan, d->view->migration, p);
    }
    /* The phase says that it works; what does not work then is said with the next pass. */
    if (!waits && (goes_on || !migration_note_trouble(d, 0))) {
        forget_wait(d, goes_on);
    }
    return true;
}

bool migration_rule_phase(struct migration_case *d)
{
    static const struct {
        enum wire_phase phase;
        bool (*decide)(struct migration_case *d);
    } phases[] = {
        {PHASE_NONE, phase_new},
        {PHASE_PENDING, phase_pending},
        {PHASE_SCHEDULING, phase_scheduling},
        {PHASE_SCHEDULED, phase_scheduled},
        {PHASE_PREPARING_TARGET, phase_handed_off},
        {PHASE_TARGET_READY, phase_handed_off},
        {PHASE_RUNNING, phase_handed_off},
    };

    for (size_t i = 0; i < FERRY_COUNT(phases); i++) {
        if (migration_in_phase(d, phases[i].phase)) {
            return migration_handed_off(d) ? phase_handed_off(d) : phases[i].decide(d);
        }
    }
    return false; /* a phase of another version of KubeVirt: not ours to end */
}
