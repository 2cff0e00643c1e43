#include "control/migration/migration_decide.h"

#include <stdio.h>
#include <string.h>

#include "api/wire/wire_abort.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/str.h"
#include "control/migration/migration_case.h"
#include "control/migration/migration_patch.h"
#include "control/plan/facts.h"

enum { REFUSED_RETRY_MS = 30000 };

const struct migration_settings migration_default_settings = {
    .limits = {.cluster = 5, .outbound_per_node = 2, .inbound_per_node = 2},
    .unschedulable_timeout_s = 300,
    .pending_timeout_s = 900,
    .prepare_timeout_s = 120,
    .connect_timeout_s = 120,
    .abort_timeout_s = 30,
    .silent_timeout_s = 300,
    .stuck_timeout_s = 600,
    .finish_timeout_s = 120,
    .keep_finished = 5,
    .pod = {.launcher_image = IMAGE_LAUNCHER},
};

static bool succeeded_on_nodes(const struct migration_case *d)
{
    return d->state && d->state->completed && !d->state->failed;
}

/* ---- finished --------------------------------------------------------------------------------
 */

static int by_age(const void *a, const void *b)
{
    const struct api_meta *x = (*(const struct api_object *const *)a)->meta;
    const struct api_meta *y = (*(const struct api_object *const *)b)->meta;

    return x->created_ms < y->created_ms ? -1 : x->created_ms > y->created_ms;
}

/* The oldest of the finished ones beyond what is kept. */
static void collect_garbage(struct migration_case *d)
{
    const struct migration_view *v = d->view;
    ferry_cleanup_free const struct api_object **old =
        ferry_xcalloc(v->n_migrations + 1, sizeof(struct api_object *));
    size_t n = 0;

    for (size_t i = 0; i < v->n_migrations; i++) {
        if (wire_migration_is_over(&v->migrations[i]->u.migration) &&
            !v->migrations[i]->meta->deleted_ms) {
            old[n++] = v->migrations[i];
        }
    }
    qsort(old, n, sizeof(struct api_object *), by_age);
    for (size_t i = 0; i + v->settings->keep_finished < n; i++) {
        plan_delete(d->plan, old[i]);
    }
}

/* Never the pod that has the VM, whatever the migration believes, nor one that may have it. */
static bool target_pod_is_left_over(const struct migration_case *d)
{
    if (!d->target || !migration_in_phase(d, PHASE_FAILED)) {
        return false;
    }
    if (!d->vmi || ferry_str_empty(d->target->node_name)) {
        return true;
    }
    bool unsure = d->state && (vmi_awaits_target(d->vmi) ||
                               (!d->state->completed && migration_may_run_unseen(d)));
    return !unsure && !ferry_streq(d->vmi->node_name, d->target->node_name);
}

/* It was ended on a view that did not show the hand-off yet: the nodes have to hear of it. */
static void end_on_nodes(struct migration_case *d)
{
    const char *why = d->m->state.failure_reason;
    enum wire_reason code = wire_error_failure_of(d->m);

    if (d->state && !d->state->completed && migration_in_phase(d, PHASE_FAILED)) {
        ferry_cleanup_free char *ended = wire_reason_failure(REASON_ABORTED, "it was ended");

        plan_patch_status(d->plan, d->view->vmi,
                          migration_patch_failed(d->view->vmi, code ? code : REASON_ABORTED,
                                                 ferry_str_empty(why) ? ended : why,
                                                 migration_may_run_unseen(d), d->now_ms));
    }
}

static bool rule_finished(struct migration_case *d)
{
    if (!wire_migration_is_over(d->m)) {
        return false;
    }
    const struct api_object *o = d->view->migration;
    bool first = plan_has_finalizer(o->meta, FINALIZER_MIGRATION);
    struct api_patch *p = api_patch_new();

    end_on_nodes(d);
    if (target_pod_is_left_over(d)) {
        migration_delete_target_pod(d);
    }
    if (first) {
        ferry_cleanup_free char *result = migration_result_text(d->m, d->vmi);

        plan_set_annotation(p, o, ANNOTATION_RESULT, result);
        plan_set_annotation(p, o, ANNOTATION_QUEUE, NULL);
        plan_remove_finalizer(p, o, FINALIZER_MIGRATION);
    }
    plan_patch(d->plan, o, p);
    collect_garbage(d);
    return true;
}

/* ---- what ends a migration -------------------------------------------------------------------
 */

static bool rule_vmi_gone(struct migration_case *d)
{
    if (d->vmi) {
        return false;
    }
    migration_fail(d, REASON_SOURCE_LOST, "there is no VirtualMachineInstance '%s'",
                   d->m->vmi_name);
    d->plan->confirm = true;
    return true;
}

static bool rule_vmi_finished(struct migration_case *d)
{
    if (!wire_vmi_is_over(d->vmi) || succeeded_on_nodes(d)) {
        return false;
    }
    migration_fail(d, REASON_SOURCE_LOST, "the VM ended (%s) before it was moved", d->vmi->phase);
    return true;
}

/* It will not run again, and may be long in going. From hand-off on the nodes end the move. */
static bool rule_vmi_deleted(struct migration_case *d)
{
    if (!d->vmi->meta.deleted_ms || migration_handed_off(d)) {
        return false;
    }
    migration_delete_target_pod(d);
    migration_fail(d, REASON_SOURCE_LOST, "the VM is being deleted");
    d->plan->confirm = true;
    return true;
}

static bool rule_cancel_before_hand_off(struct migration_case *d)
{
    if (!d->m->meta.deleted_ms || migration_handed_off(d) ||
        migration_in_phase(d, PHASE_PREPARING_TARGET) ||
        migration_in_phase(d, PHASE_TARGET_READY) || migration_in_phase(d, PHASE_RUNNING)) {
        return false;
    }
    migration_delete_target_pod(d);
    migration_fail(d, REASON_ABORTED, "cancelled before it began");
    /* A hand-off that the cache does not show yet makes it another case. */
    d->plan->confirm = true;
    return true;
}

static bool rule_target_lost(struct migration_case *d)
{
    bool gone = !d->target && (migration_target_created(d->m) || migration_handed_off(d));
    bool down = d->target && wire_pod_is_over(d->target);
    /* It does not come back; and on a node that is dead it is never gone. */
    bool going = d->target && d->target->meta.deleted_ms && !migration_handed_off(d);

    if ((!gone && !down && !going) || (d->state && (d->state->completed || d->state->failed))) {
        return false;
    }
    char text[MIGRATION_TEXT];
    snprintf(text, sizeof(text), "the target pod %s%s%.200s",
             gone   ? "is gone"
             : down ? "ended"
                    : "is being deleted",
             down && d->target->message ? ": " : "",
             down && d->target->message ? d->target->message : "");
    if (migration_handed_off(d)) {
        migration_fail_on_vmi(d, REASON_TARGET_LOST, text, false);
    } else {
        migration_fail(d, REASON_TARGET_LOST, "%s", text);
    }
    /* Before hand-off, too: the cache may not show it yet. */
    d->plan->confirm = gone || !migration_handed_off(d);
    return true;
}

static bool rule_state_taken(struct migration_case *d)
{
    bool after = migration_in_phase(d, PHASE_PREPARING_TARGET) ||
                 migration_in_phase(d, PHASE_TARGET_READY) || migration_in_phase(d, PHASE_RUNNING);

    if (!after || migration_handed_off(d)) {
        return false;
    }
    migration_fail(d, REASON_ABORTED, "the VMI's migration state was %s",
                   d->vmi->migration.present ? "taken over by another migration" : "cleared");
    d->plan->confirm = true;
    return true;
}

/* A node whose object was taken away will not report. In post-copy that is the end of the guest:
 * half of it was there. */
static bool rule_node_gone(struct migration_case *d)
{
    bool source = d->view->source_node_gone;

    if (!migration_handed_off(d) || d->state->completed ||
        (!source && !d->view->target_node_gone)) {
        return false;
    }
    char text[MIGRATION_TEXT];
    bool lost = source || wire_mode_is(d->state->mode, MODE_POST_COPY);
    const char *name = source ? d->state->source_node : d->state->target_node;

    snprintf(text, sizeof(text), "the %s node %.200s was removed%s", source ? "source" : "target",
             name ? name : "", lost ? ": the guest is lost" : "");
    /* The target of a source that is gone may have the guest and not have said so yet. */
    migration_fail_on_vmi(d, source ? REASON_SOURCE_LOST : REASON_TARGET_LOST, text, source);
    d->plan->confirm = true;
    return true;
}

/* By the VMI's annotation; a node of an older version says it in the text alone. */
static enum wire_reason code_on_nodes(const struct migration_case *d)
{
    enum wire_reason code = wire_error_failure_read(&d->vmi->meta.annotations, d->m->meta.uid);

    return code ? code : wire_reason_of_failure(d->state->failure_reason);
}

static bool rule_failed_on_nodes(struct migration_case *d)
{
    if (!d->state || !d->state->failed) {
        return false;
    }
    const char *why = d->state->failure_reason;
    enum wire_reason code = code_on_nodes(d);

    if (code) {
        migration_end_as_failed(d, code, why);
    } else {
        bool aborted =
            d->state->abort_requested && wire_abort_is(d->state->abort_status, ABORT_SUCCEEDED);

        migration_fail(d, aborted ? REASON_ABORTED : REASON_LIBVIRT_ERROR, "%s",
                       ferry_str_empty(why) ? "the source node reported failure" : why);
    }
    return true;
}

/* Works in every phase after hand-off; the source answers it. */
static bool rule_abort(struct migration_case *d)
{
    if (!d->m->meta.deleted_ms || !migration_handed_off(d) || d->state->abort_requested ||
        d->state->completed) {
        return false;
    }
    struct api_patch *p = migration_status_patch(d);

    plan_patch_status(d->plan, d->view->vmi, migration_patch_abort(d->view->vmi));
    if (migration_set_abort_condition(d, p)) {
        plan_patch_status(d->plan, d->view->migration, p);
    } else {
        api_patch_free(p);
    }
    plan_event(d->plan, d->view->migration, KUBE_EVENT_NORMAL, "SuccessfulAbortMigration",
               "Asked the source node to abort");
    return true;
}

static const struct {
    const char *name;
    bool (*decide)(struct migration_case *d);
} rules[] = {
    {"finished", rule_finished},
    {"vmi-gone", rule_vmi_gone},
    {"vmi-finished", rule_vmi_finished},
    {"cancel-before-hand-off", rule_cancel_before_hand_off},
    {"vmi-deleted", rule_vmi_deleted},
    {"target-lost", rule_target_lost},
    {"node-gone", rule_node_gone},
    {"state-taken", rule_state_taken},
    {"failed-on-nodes", rule_failed_on_nodes},
    {"abort", rule_abort},
    {"not-started", migration_rule_not_started},
    {"arrived", migration_rule_arrived},
    {"node-silent", migration_rule_node_silent},
    {"stuck", migration_rule_stuck},
    {"target-pod-pending", migration_rule_target_pod_pending},
    {"phase", migration_rule_phase},
};

static struct migration_case make_case(const struct migration_view *view, int64_t now_ms,
                                       struct plan *plan)
{
    const struct api_vmi *vmi = view->vmi ? &view->vmi->u.vmi : NULL;
    struct migration_case d = {.view = view,
                               .m = &view->migration->u.migration,
                               .vmi = vmi,
                               .target = view->target_pod ? &view->target_pod->u.pod : NULL,
                               .now_ms = now_ms,
                               .plan = plan};

    if (vmi && vmi->migration.present && ferry_streq(vmi->migration.uid, d.m->meta.uid)) {
        d.state = &vmi->migration;
    }
    return d;
}

bool migration_is_refused(const struct api_migration *m)
{
    return api_condition_true(&m->conditions, CONDITION_QUOTA) ||
           api_condition_true(&m->conditions, CONDITION_REFUSED);
}

void migration_decide_refused(const struct migration_view *view, const struct ferry_error *err,
                              int64_t now_ms, struct plan *ret)
{
    *ret = (struct plan){.rule = "refused"};
    struct migration_case d = make_case(view, now_ms, ret);
    bool quota = wire_error_is(err, WIRE_ERROR_QUOTA);
    struct plan_condition c[] = {{.type = CONDITION_QUOTA}, {.type = CONDITION_REFUSED}};
    struct migration_wait wait = {.reason = quota ? REASON_QUOTA : REASON_TARGET_POD_PENDING,
                                  .message = err->msg,
                                  .blocker = d.m->vmi_name,
                                  .check_ms = REFUSED_RETRY_MS};

    c[quota ? 0 : 1].status = "True";
    c[quota ? 0 : 1].reason = quota ? "ExceededQuota" : wire_reason_text(REASON_REFUSED);
    struct api_patch *p = migration_status_patch(&d);
    plan_ensure_object(p, view->migration, "/status");
    if (plan_set_conditions(p, view->migration, &d.m->conditions, c, 2, now_ms)) {
        plan_patch_status(ret, view->migration, p);
    } else {
        api_patch_free(p);
    }
    if (migration_wait_for(&d, &wait)) {
        plan_event(ret, view->vmi ? view->vmi : view->migration, KUBE_EVENT_WARNING, "FailedCreate",
                   "Error creating target pod: %s", err->msg);
    }
}

bool migration_took_effect(const struct migration_view *live)
{
    const struct api_vmi *vmi = live->vmi ? &live->vmi->u.vmi : NULL;

    return live->target_pod || (vmi && vmi->migration.present &&
                                ferry_streq(vmi->migration.uid, live->migration->meta->uid));
}

void migration_decide(const struct migration_view *view, int64_t now_ms, struct plan *ret)
{
    struct migration_case d = make_case(view, now_ms, ret);

    *ret = (struct plan){.rule = ""};
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (rules[i].decide(&d)) {
            ret->rule = rules[i].name;
            return;
        }
    }
}
