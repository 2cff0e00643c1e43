/* Links that a virtual machine passes from its wish to run to a guest that does: the VM, its
 * instance, claims, pod, node, launcher and guest. */
#include <inttypes.h>
#include <stdio.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "cli/why/why_case.h"

enum { LAUNCH_MS = 60000 };

static bool in_phase(const struct why_view *v, enum wire_phase phase)
{
    return v->vmi && wire_phase_is(v->vmi->phase, phase);
}

static bool runs(const struct why_view *v)
{
    return in_phase(v, PHASE_RUNNING);
}

/* What became known of it last, for a text that has nothing better. */
static const char *last_word(const struct why_view *v, const char *other)
{
    return v->event && !ferry_str_empty(v->event->message) ? v->event->message : other;
}

static bool is_false(const struct api_conditions *list, const char *type,
                     const struct api_condition **ret)
{
    *ret = api_condition_find(list, type);
    return *ret && ferry_streq((*ret)->status, "False");
}

/* ---- links ----------------------------------------------------------------------------------- */

/* A VM without an instance: what of its own account keeps it from having one. */
static void say_idle(const struct why_view *v, struct why_link *l)
{
    const struct api_vm *vm = v->vm;
    const struct api_condition *refused = api_condition_find(&vm->conditions, CONDITION_FAILURE);
    const struct api_condition *recovery =
        api_condition_find(&vm->conditions, CONDITION_MANUAL_RECOVERY);

    if (refused && ferry_streq(refused->status, "True")) {
        why_say(l, WHY_BROKEN, "no instance of %s can be made: %.300s", vm->meta.name,
                why_text_or(refused->message, "no more is known"));
        why_remedy(l, "change what is named; it is tried again by itself");
    } else if (recovery && ferry_streq(recovery->status, "True")) {
        why_say(l, WHY_BROKEN, "%s is not started: %.300s", vm->meta.name,
                why_text_or(recovery->message, "its volumes have to be seen to"));
        why_remedy(l, "set its volumes back in spec.template");
    } else if (ferry_streq(vm->printable_status, "CrashLoopBackOff")) {
        why_say(l, WHY_BROKEN, "%s failed before it ran and is tried again later; last: %.280s",
                vm->meta.name, last_word(v, "no more is known"));
        why_remedy(l, "see to what is named; 'ferry events %s' has more", vm->meta.name);
    } else if (ferry_streq(vm->printable_status, "Starting")) {
        why_say(l, WHY_WAITS, "%s is about to be started", vm->meta.name);
    } else {
        why_say(l, WHY_BROKEN, "%s is %s, and its run strategy is %s", vm->meta.name,
                why_text_or(vm->printable_status, "Stopped"), vm->run_strategy);
        why_remedy(l, "'ferry vm start %s' starts it", vm->meta.name);
    }
}

static void link_vm(const struct why_view *v, struct why_link *l)
{
    const struct api_meta *m = v->vmi ? &v->vmi->meta : v->vm ? &v->vm->meta : NULL;

    if (!m) {
        why_say(l, WHY_BROKEN, "there is no such virtual machine");
        why_remedy(l, "'ferry vm list' shows those that there are");
    } else if (m->deleted_ms) {
        why_say(l, WHY_BROKEN, "%s is being deleted", m->name);
    } else if (!v->vmi) {
        say_idle(v, l);
    } else if (wire_vmi_is_over(v->vmi)) {
        const struct api_condition *c = api_condition_find(&v->vmi->conditions, CONDITION_READY);

        why_say(l, WHY_BROKEN, "%s %s%s%s: %.280s", m->name,
                in_phase(v, PHASE_FAILED) ? "failed" : "ended",
                ferry_str_empty(v->vmi->reason) ? "" : " by ", why_text_or(v->vmi->reason, ""),
                why_text_or(c ? c->message : NULL, last_word(v, "no more is known")));
        why_remedy(l, "'ferry vm start %s' starts it again", m->name);
    } else if (runs(v)) {
        why_say(l, WHY_OK, "%s runs on %s, %s", m->name, why_text_or(v->vmi->node_name, "?"),
                why_accelerator(v->vmi));
    } else {
        why_say(l, WHY_OK, "%s is %s", m->name, wire_phase_shown(v->vmi->phase));
    }
}

static void link_controller(const struct why_view *v, struct why_link *l)
{
    if (!runs(v)) {
        why_say_controller(v, l);
    }
}

static const struct api_claim *claim_of(const struct why_view *v, const char *name)
{
    for (size_t i = 0; i < v->n_claims; i++) {
        if (ferry_streq(v->claims[i]->meta->name, name)) {
            return &v->claims[i]->u.claim;
        }
    }
    return NULL;
}

static void link_volumes(const struct why_view *v, struct why_link *l)
{
    const struct api_machine *m = &v->vmi->machine;
    const struct api_condition *c;

    if (runs(v)) {
        return;
    }
    if (in_phase(v, PHASE_PENDING) && is_false(&v->vmi->conditions, CONDITION_SYNCHRONIZED, &c)) {
        why_say(l, WHY_BROKEN, "%s: %.300s", why_text_or(c->reason, "it waits"),
                why_text_or(c->message, "no more is known"));
        why_remedy(l, "make what is named; the VM goes on by itself");
        return;
    }
    for (size_t i = 0; v->claims_known && i < m->n_volumes; i++) {
        const char *name = m->volumes[i].claim;
        const struct api_claim *claim = name ? claim_of(v, name) : NULL;

        if (name && !claim) {
            why_say(l, WHY_BROKEN, "volume %s: there is no claim %s", m->volumes[i].name, name);
            why_remedy(l, "make the claim; the VM goes on by itself");
            return;
        }
    }
}

/* Said only when its pod is in nobody else's way: some claims are bound for a pod alone. */
static bool say_unbound(const struct why_view *v, struct why_link *l)
{
    const struct api_machine *m = &v->vmi->machine;

    for (size_t i = 0; v->claims_known && i < m->n_volumes; i++) {
        const char *name = m->volumes[i].claim;
        const struct api_claim *claim = name ? claim_of(v, name) : NULL;

        if (claim && !ferry_streq(claim->phase, "Bound")) {
            why_say(l, WHY_WAITS, "%s waits, and so does its claim %s, which is %s",
                    v->pod->meta.name, name, why_text_or(claim->phase, "not bound"));
            return true;
        }
    }
    return false;
}

static void link_pod(const struct why_view *v, struct why_link *l)
{
    const struct api_pod *pod = v->pod;

    if (runs(v)) {
        return;
    }
    if (!pod) {
        why_say(l, WHY_WAITS, "its pod is not created yet");
    } else if (wire_pod_is_over(pod)) {
        why_say(l, WHY_BROKEN, "%s ended%s%s%s%.250s", pod->meta.name,
                ferry_str_empty(pod->end_reason) ? "" : " with ", why_text_or(pod->end_reason, ""),
                ferry_str_empty(pod->message) ? "" : ": ", why_text_or(pod->message, ""));
        why_remedy(l, "look at the log of ferry-pods on %s",
                   why_text_or(pod->node_name, "its node"));
    } else if (wire_phase_of(pod->phase) > PHASE_PENDING && pod->container_ready) {
        why_say(l, WHY_OK, "%s runs on %s", pod->meta.name, why_text_or(pod->node_name, "?"));
    } else {
        why_say_pending(v, pod, l);
        if (l->state == WHY_WAITS) {
            say_unbound(v, l);
        }
    }
}

static void link_node(const struct why_view *v, struct why_link *l)
{
    const char *node = why_text_or(v->vmi->node_name, v->pod ? v->pod->node_name : NULL);
    const char *trouble = why_node_trouble(v, node);

    if (trouble) {
        why_say(l, WHY_BROKEN, "node %s %s", node, trouble);
        why_remedy(l, "bring %s back: are ferry-handler and ferry-pods running on it?", node);
    }
}

/* Its pod is up: the handler tells the launcher to start the guest, and says what came of it. */
static void link_launcher(const struct why_view *v, struct why_link *l)
{
    const struct api_condition *c;
    char age[PROGRESS_TEXT];

    if (runs(v)) {
        return;
    }
    if (is_false(&v->vmi->conditions, CONDITION_SYNCHRONIZED, &c)) {
        why_say(l, WHY_BROKEN, "the launcher cannot start the guest: %.300s",
                why_text_or(c->message, "no more is known"));
        why_remedy(l, "change what is named, and start the VM again");
        return;
    }
    int64_t age_ms = v->pod ? v->now_ms - v->pod->meta.created_ms : 0;
    bool late = age_ms > LAUNCH_MS;
    why_say(l, late ? WHY_BROKEN : WHY_WAITS, "the guest is being started; its pod was made %s ago",
            progress_duration(age_ms, age));
    if (late) {
        why_remedy(l, "look at the logs of ferry-handler on %s and of the pod %s",
                   why_text_or(v->vmi->node_name, "its node"),
                   v->pod ? v->pod->meta.name : "of its launcher");
    }
}

static void link_guest(const struct why_view *v, struct why_link *l)
{
    const struct api_condition *c = api_condition_find(&v->vmi->conditions, CONDITION_PAUSED);
    const struct api_condition *reset =
        api_condition_find(&v->vmi->conditions, CONDITION_GUEST_RESET);

    if (c && ferry_streq(c->status, "True")) {
        bool disk = ferry_streq(c->reason, "PausedIOError");

        why_say(l, WHY_BROKEN, "the guest stands still: %.300s",
                why_text_or(c->message, why_text_or(c->reason, "no more is known")));
        why_remedy(l, "%s'ferry vm unpause %s' lets it go on",
                   disk ? "see to the volume (room, the disk below it); then " : "",
                   v->vmi->meta.name);
    } else if (reset) {
        why_say(l, WHY_OK, "%.300s", why_text_or(reset->message, "the guest was reset"));
    }
}

static void link_last_move(const struct why_view *v, struct why_link *l)
{
    const struct api_migration *m = v->last;
    const char *reason = m->state.failure_reason;
    int64_t end_ms = m->state.end_ms ? m->state.end_ms : m->meta.created_ms;
    char age[PROGRESS_TEXT];

    progress_duration(v->now_ms - end_ms, age);
    if (wire_phase_is(m->phase, PHASE_FAILED)) {
        why_say(l, WHY_OK, "the last one, %s, failed %s ago: %.280s", m->meta.name, age,
                why_text_or(reason, "no reason was given"));
    } else {
        why_say(l, WHY_OK, "the last one, %s, went from %s to %s, %s ago", m->meta.name,
                why_text_or(m->state.source_node, "?"), why_text_or(m->state.target_node, "?"),
                age);
    }
}

static void link_end(const struct why_view *v, struct why_link *l)
{
    (void)v;
    why_say(l, WHY_OK, "nothing is in the way: it runs");
}

static const struct why_row start[] = {
    {"vm", link_vm},           {"controller", link_controller},
    {"volumes", link_volumes}, {"pod", link_pod},
    {"node", link_node},       {"launcher", link_launcher},
    {"guest", link_guest},     {"migratable", why_link_migratable},
};
/* Of one that runs: that of a move, told as what was, or that there was none. */
static const struct why_row moved[] = {{"last-move", link_last_move}, {"end", link_end}};
static const struct why_row unmoved[] = {{"object", why_link_object}};

void why_walk_vm(const struct why_view *view, struct why_answer *ret)
{
    *ret = (struct why_answer){0};
    why_walk_rows(view, start, FERRY_COUNT(start), ret);
    if (ret->links[ret->n - 1].state != WHY_OK) {
        return;
    }
    if (view->last) {
        why_walk_rows(view, moved, FERRY_COUNT(moved), ret);
    } else {
        why_walk_rows(view, unmoved, FERRY_COUNT(unmoved), ret);
    }
}
