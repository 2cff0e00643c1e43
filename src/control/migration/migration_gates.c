/* What a move has to pass before its target pod is made: one ordered list. The first gate that is
 * closed is what the move waits for, and says so; whether any is closed decides if a new move shows
 * that it waits at all. Pure: nothing is planned here. */
#include <stdio.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "control/migration/migration_case.h"
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

int64_t migration_retry_ms(const struct migration_case *d)
{
    int priority = migration_priority(d->m);

    return priority >= KUBE_PRIORITY_CRITICAL ? 1000 : priority >= KUBE_PRIORITY_USER ? 3000 : 5000;
}

static enum wire_reason reason_of_refusal(const struct migration_case *d)
{
    return api_condition_true(&d->m->conditions, CONDITION_QUOTA)     ? REASON_QUOTA
           : api_condition_true(&d->m->conditions, CONDITION_REFUSED) ? REASON_TARGET_POD_PENDING
                                                                      : REASON_CLUSTER_LIMIT;
}

/* No move is in the way: it is the limit itself, or what was refused before. */
static const char *blocker_of_none(const struct migration_case *d)
{
    return d->view->kubevirt && !migration_is_refused(d->m) ? d->view->kubevirt->meta->name
                                                            : d->m->vmi_name;
}

/* ---- gates: true = open, else `ret` says what closes it
 * ------------------------------------------
 */

static bool source_gate(const struct migration_case *d, struct migration_gate *ret)
{
    const struct api_object *sibling = blocking_sibling(d->view);
    struct migration_wait w = {.reason = REASON_SOURCE_BUSY, .check_ms = migration_retry_ms(d)};

    if (migration_is_startable(d->view, &w.message)) {
        return true;
    }
    w.blocker = sibling                     ? sibling->meta->name
                : vmi_awaits_target(d->vmi) ? d->vmi->migration.target_node
                                            : d->m->vmi_name;
    ret->wait = w;
    return false;
}

static bool backoff_gate(const struct migration_case *d, struct migration_gate *ret)
{
    int64_t until = migration_backoff_until(d->view);

    ret->wait = (struct migration_wait){.reason = REASON_BACK_OFF,
                                        .message = "automatic moves of this VM failed before",
                                        .blocker = d->m->vmi_name,
                                        .deadline_ms = until};
    return until <= d->now_ms;
}

static bool volumes_gate(const struct migration_case *d, struct migration_gate *ret)
{
    struct storage_verdict v = storage_check(d->vmi, &d->view->storage);

    snprintf(ret->text, sizeof(ret->text), "%s", v.reason ? v.message : "");
    ret->for_good = v.reason && v.final;
    ret->wait = (struct migration_wait){.reason = v.reason,
                                        .message = ret->text,
                                        .blocker = v.claim,
                                        .check_ms = migration_retry_ms(d)};
    return v.reason == REASON_NONE;
}

static bool place_gate(const struct migration_case *d, struct migration_gate *ret)
{
    const struct limits_answer *a = &d->view->limits;
    const struct migration_limits *l = &d->view->settings->limits;

    if (a->start || (a->room && migration_is_refused(d->m))) {
        return true;
    }
    snprintf(ret->text, sizeof(ret->text), "%zu moves run, %zu of them leave %s; limits: %u and %u",
             a->running, a->outbound, d->vmi->node_name, l->cluster, l->outbound_per_node);
    /* Those far behind are woken when it is their turn; no need to check so often. */
    ret->wait = (struct migration_wait){.reason = a->reason ? a->reason : reason_of_refusal(d),
                                        .message = ret->text,
                                        .blocker = a->blocker ? a->blocker : blocker_of_none(d),
                                        .position = a->position,
                                        .check_ms = migration_retry_ms(d) *
                                                    (1 + (int64_t)(a->position / 64))};
    return false;
}

bool migration_gates_open(const struct migration_case *d, struct migration_gate *ret)
{
    static bool (*const gates[])(const struct migration_case *d, struct migration_gate *ret) = {
        source_gate, backoff_gate, volumes_gate, place_gate};
    struct migration_gate none;

    ret = ret ? ret : &none;
    for (size_t i = 0; i < FERRY_COUNT(gates); i++) {
        *ret = (struct migration_gate){0};
        if (!gates[i](d, ret)) {
            return false;
        }
    }
    return true;
}
