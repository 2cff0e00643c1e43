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

static const struct api_object *blocking_sibling(const struct migration_view *v)
{
    const struct api_meta *me = v->migration->meta;

    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_object *o = v->migrations[i];
        const struct api_migration *s = &o->u.migration;
        bool older = o->meta->created_ms < me->created_ms ||
                     (o->meta->created_ms == me->created_ms && strcmp(o->meta->uid, me->uid) < 0);

        if (!wire_migration_is_over(s) && !ferry_streq(o->meta->uid, me->uid) &&
            (older || migration_is_running(s))) {
            return o;
        }
    }
    return NULL;
}

bool migration_is_startable(const struct migration_view *view, const char **ret_why)
{
    const struct api_vmi *vmi = view->vmi ? &view->vmi->u.vmi : NULL;
    const char *why = NULL;

    if (!vmi || vmi->meta.deleted_ms || !vmi_has_phase(vmi, PHASE_RUNNING)) {
        why = "the VM does not run";
    } else if (!view->source_pod) {
        why = "the pod of the VM is not known";
    } else if (vmi_is_migrating(vmi)) {
        why = "the VM is being moved by another migration";
    } else if (vmi_awaits_target(vmi)) {
        why = "the target node of the last move has not said that it has no guest";
    } else if (blocking_sibling(view)) {
        why = "an older migration of the same VM goes first";
    }
    if (ret_why) {
        *ret_why = why;
    }
    return !why;
}

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

static int64_t retry_ms(const struct migration_case *d)
{
    int priority = migration_priority(d->m);

    return priority >= KUBE_PRIORITY_CRITICAL ? 1000 : priority >= KUBE_PRIORITY_USER ? 3000 : 5000;
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

static bool wait_for_source(struct migration_case *d)
{
    const struct api_object *sibling = blocking_sibling(d->view);
    struct migration_wait wait = {.reason = REASON_SOURCE_BUSY, .check_ms = retry_ms(d)};

    if (migration_is_startable(d->view, &wait.message)) {
        return false;
    }
    wait.blocker = sibling                     ? sibling->meta->name
                   : vmi_awaits_target(d->vmi) ? d->vmi->migration.target_node
                                               : d->m->vmi_name;
    migration_wait_for(d, &wait);
    return true;
}

static bool wait_for_backoff(struct migration_case *d)
{
    int64_t until = migration_backoff_until(d->view);

    if (until <= d->now_ms) {
        return false;
    }
    struct migration_wait wait = {.reason = REASON_BACK_OFF,
                                  .message = "automatic moves of this VM failed before",
                                  .blocker = d->m->vmi_name,
                                  .deadline_ms = until};
    if (migration_wait_for(d, &wait)) {
        plan_event(d->plan, d->view->vmi, KUBE_EVENT_WARNING, "MigrationBackoff",
                   "backoff migrating vmi %s/%s", d->m->meta.namespace_, d->m->vmi_name);
    }
    plan_again(d->plan, until - d->now_ms);
    return true;
}

static bool wait_for_volumes(struct migration_case *d)
{
    struct storage_verdict v = storage_check(d->vmi, &d->view->storage);

    if (v.reason && v.final) {
        migration_fail(d, v.reason, "%s", v.message);
    } else if (v.reason) {
        migration_wait_for(d, &(struct migration_wait){.reason = v.reason,
                                                       .message = v.message,
                                                       .blocker = v.claim,
                                                       .check_ms = retry_ms(d)});
    }
    return v.reason != REASON_NONE;
}

static enum wire_reason reason_of_refusal(const struct migration_case *d)
{
    return api_condition_true(&d->m->conditions, CONDITION_QUOTA)     ? REASON_QUOTA
           : api_condition_true(&d->m->conditions, CONDITION_REFUSED) ? REASON_TARGET_POD_PENDING
                                                                      : REASON_CLUSTER_LIMIT;
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

/* No move is in the way: it is the limit itself, or what was refused before. */
static const char *blocker_of_none(const struct migration_case *d)
{
    return d->view->kubevirt && !migration_is_refused(d->m) ? d->view->kubevirt->meta->name
                                                            : d->m->vmi_name;
}

static bool wait_for_place(struct migration_case *d)
{
    const struct limits_answer *a = &d->view->limits;
    const struct migration_limits *l = &d->view->settings->limits;
    bool refused = migration_is_refused(d->m);
    char text[MIGRATION_TEXT];

    if (a->start || (refused && a->room)) {
        return false;
    }
    snprintf(text, sizeof(text), "%zu moves run, %zu of them leave %s; limits: %u and %u",
             a->running, a->outbound, d->vmi->node_name, l->cluster, l->outbound_per_node);
    /* Those far behind are woken when it is their turn; no need to look so often. */
    struct migration_wait wait = {.reason = a->reason ? a->reason : reason_of_refusal(d),
                                  .message = text,
                                  .blocker = a->blocker ? a->blocker : blocker_of_none(d),
                                  .position = a->position,
                                  .check_ms = retry_ms(d) * (1 + (int64_t)(a->position / 64))};
    migration_wait_for(d, &wait);
    return true;
}

/* What keeps the target pod from being made, if anything does. */
static bool may_start(const struct migration_case *d)
{
    const struct limits_answer *a = &d->view->limits;

    return migration_is_startable(d->view, NULL) && migration_backoff_until(d->view) <= d->now_ms &&
           !storage_check(d->vmi, &d->view->storage).reason &&
           (a->start || (a->room && migration_is_refused(d->m)));
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
               .check_ms = retry_ms(d),
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

static bool phase_pending(struct migration_case *d)
{
    const struct api_condition *c =
        api_condition_find(&d->vmi->conditions, CONDITION_LIVE_MIGRATABLE);

    if (d->target) {
        return go_on_with_target(d);
    }
    if (c && ferry_streq(c->status, "False")) {
        migration_fail(d, REASON_DEVICE_NOT_MIGRATABLE, "the VM cannot be moved: %s: %s",
                       c->reason ? c->reason : "", c->message ? c->message : "");
        return true;
    }
    if (wait_for_source(d) || wait_for_backoff(d) || wait_for_volumes(d) || wait_for_place(d)) {
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
    if (!d->target && !may_start(d)) {
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
