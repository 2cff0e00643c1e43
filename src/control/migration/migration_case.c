#include "control/migration/migration_case.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "control/migration/migration_patch.h"

bool migration_in_phase(const struct migration_case *d, enum wire_phase phase)
{
    return wire_phase_is(d->m->phase, phase);
}

bool migration_handed_off(const struct migration_case *d)
{
    return d->state != NULL;
}

bool migration_past(struct migration_case *d, int64_t since_ms, int64_t limit_s)
{
    int64_t left = limit_s * 1000 - clock_steps_elapsed(&d->view->clock, since_ms, d->now_ms);

    if (left > 0) {
        plan_again(d->plan, left);
    }
    return left <= 0;
}

struct api_patch *migration_status_patch(const struct migration_case *d)
{
    struct api_patch *p = api_patch_new();

    if (d->m->phase[0]) {
        api_patch_test_str(p, "/status/phase", d->m->phase);
    } else {
        plan_guard(p, d->view->migration);
    }
    return p;
}

void migration_set_queue_text(struct migration_case *d, const char *text)
{
    struct api_patch *p = api_patch_new();

    plan_set_annotation(p, d->view->migration, ANNOTATION_QUEUE, text);
    plan_patch(d->plan, d->view->migration, p);
}

struct api_patch *migration_phase_patch(struct migration_case *d, enum wire_phase phase)
{
    struct api_patch *p = migration_status_patch(d);
    enum wire_phase first = wire_phase_of(d->m->phase) + 1;

    if (first < phase && phase <= PHASE_SUCCEEDED) {
        plan_set_phases(p, d->view->migration, first, phase, d->now_ms);
    } else {
        plan_set_phase(p, d->view->migration, phase, d->now_ms);
    }
    d->plan->phase = wire_phase_text(phase);
    return p;
}

void migration_move_to(struct migration_case *d, enum wire_phase phase)
{
    plan_patch_status(d->plan, d->view->migration, migration_phase_patch(d, phase));
}

bool migration_wait_for(struct migration_case *d, const struct migration_wait *given)
{
    enum {
        RECHECK_MS = 30000
    }; /* whatever it waits for wakes it; whoever reads of it wants a time */
    const char *old = api_map_get(&d->m->meta.annotations, ANNOTATION_QUEUE);
    struct migration_wait w = *given;

    d->plan->reason = wire_reason_text(w.reason);
    if (!w.check_ms && !w.deadline_ms) {
        w.check_ms = RECHECK_MS;
    }
    if (w.check_ms) {
        plan_again(d->plan, w.check_ms);
    }
    if (migration_queue_text_holds(old, &w)) {
        return false;
    }
    ferry_cleanup_free char *text = migration_queue_text(&w, d->now_ms);
    migration_set_queue_text(d, text);
    return true;
}

void migration_wait_since(struct migration_case *d, int64_t since_ms,
                          const struct migration_wait *w)
{
    enum { SHORT_MS = 2000 };
    int64_t left = since_ms + SHORT_MS - d->now_ms;

    if (left > 0) {
        plan_again(d->plan, left);
    } else {
        migration_wait_for(d, w);
    }
}

bool migration_set_abort_condition(struct migration_case *d, struct api_patch *p)
{
    struct plan_condition c = {.type = CONDITION_ABORT_REQUESTED, .status = "True"};

    return d->m->meta.deleted_ms &&
           plan_set_condition(p, d->view->migration, &d->m->conditions, &c, d->now_ms);
}

void migration_copy_state(struct migration_case *d, struct api_patch *p, const char *failure)
{
    if (d->state) {
        api_patch_add_val(p, "/status/migrationState",
                          yyjson_obj_get((yyjson_val *)d->vmi->status, "migrationState"));
    } else if (failure) {
        ferry_cleanup_free char *json = migration_state_failed_early(d->view, failure, d->now_ms);

        api_patch_add_raw(p, "/status/migrationState", json);
    }
}

/* All conditions of an end at once: each is a place in the list. */
static void say_why(const struct migration_case *d, struct api_patch *p, enum wire_reason reason,
                    const char *failure)
{
    char text[MIGRATION_TEXT];
    struct plan_condition c[2] = {{.type = CONDITION_FAILED,
                                   .status = "True",
                                   .reason = wire_reason_text(reason),
                                   .message = failure}};
    size_t n = 1;

    if (d->m->meta.deleted_ms) {
        c[n++] = (struct plan_condition){.type = CONDITION_ABORT_REQUESTED, .status = "True"};
    } else if ((c[n].reason = wire_reason_text(migration_trouble(d, text)))) {
        c[n].type = CONDITION_NODE_TROUBLE;
        c[n].status = "True";
        c[n++].message = text;
    }
    plan_set_conditions(p, d->view->migration, &d->m->conditions, c, n, d->now_ms);
}

void migration_end_as_failed(struct migration_case *d, enum wire_reason reason, const char *failure)
{
    struct api_patch *p = migration_status_patch(d);

    plan_set_phase(p, d->view->migration, PHASE_FAILED, d->now_ms);
    say_why(d, p, reason, failure);
    migration_copy_state(d, p, failure);
    plan_patch_status(d->plan, d->view->migration, p);
    d->plan->phase = wire_phase_text(PHASE_FAILED);
    d->plan->reason = wire_reason_text(reason);
    plan_event(d->plan, d->view->migration, KUBE_EVENT_WARNING, "FailedMigration", "%s", failure);
    plan_event_code(d->plan, wire_reason_text(reason));
}

void migration_fail(struct migration_case *d, enum wire_reason reason, const char *fmt, ...)
{
    char message[MIGRATION_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    ferry_cleanup_free char *failure = wire_reason_failure(reason, message);
    migration_end_as_failed(d, reason, failure);
}

bool migration_may_run_unseen(const struct migration_case *d)
{
    return d->state && !ferry_str_empty(d->state->target_address);
}

void migration_fail_on_vmi(struct migration_case *d, enum wire_reason reason, const char *message,
                           bool unsure)
{
    ferry_cleanup_free char *failure = wire_reason_failure(reason, message);

    plan_patch_status(d->plan, d->view->vmi,
                      migration_patch_failed(d->view->vmi, reason, failure, unsure, d->now_ms));
    d->plan->reason = wire_reason_text(reason);
    plan_event(d->plan, d->view->vmi, KUBE_EVENT_WARNING, "FailedMigration", "%s", failure);
}

char *migration_configuration(struct migration_case *d, const char **ret_policy)
{
    const struct migration_view *v = d->view;
    const struct policy_sources sources = {
        .kubevirt = v->kubevirt,
        .policies = v->policies,
        .n_policies = v->n_policies,
        .ns_labels = v->namespace_ ? &v->namespace_->meta->labels : NULL,
        .vmi_labels = &d->vmi->meta.labels,
    };
    const struct api_object *policy = NULL;
    struct ferry_error err = {0};
    char *json = policy_resolve(&sources, &policy, &err);

    if (!json) {
        const struct api_object *of = policy_match(&sources);

        of = of ? of : v->kubevirt;
        migration_wait_for(d, &(struct migration_wait){.reason = REASON_POLICY_INVALID,
                                                       .message = err.msg,
                                                       .blocker = of ? of->meta->name : NULL});
    }
    *ret_policy = policy ? policy->meta->name : NULL;
    return json;
}

void migration_delete_target_pod(struct migration_case *d)
{
    const struct api_object *pod = d->view->target_pod;

    if (pod && !pod->meta->deleted_ms) {
        plan_delete(d->plan, pod);
        plan_event(d->plan, d->view->migration, KUBE_EVENT_NORMAL, "SuccessfulDelete",
                   "Deleted target pod %s", pod->meta->name);
    }
}
