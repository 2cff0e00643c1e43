#include "control/vm/vmi_decide.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "control/pod/accelerator_pick.h"
#include "control/pod/machine_pick.h"
#include "json/doc.h"

enum {
    CLAIM_RETRY_MS = 10000,
    STOP_MARGIN_MS = 30000, /* beyond the guest's own grace, for its handler */
    ORPHAN_AGE_MS = 60000,  /* a target pod whose migration the cache does not show (yet) */
};

struct decision {
    const struct vmi_view *view;
    const struct api_vmi *vmi;
    const struct api_object *current; /* the pod that has the VM, or NULL */
    int64_t now_ms;
    struct plan *plan;
};

/* Moves the VMI to a phase; `patch_take` may carry more of the same write. */
static void move_to(struct decision *d, struct api_patch *patch_take, enum wire_phase phase)
{
    struct api_patch *p = patch_take ? patch_take : api_patch_new();

    if (!patch_take) {
        plan_guard(p, d->view->vmi);
    }
    plan_set_phase(p, d->view->vmi, phase, d->now_ms);
    plan_patch_status(d->plan, d->view->vmi, p);
    d->plan->phase = wire_phase_text(phase);
}

static void fail_vmi(struct decision *d, const char *reason, const char *message)
{
    struct api_patch *p = api_patch_new();

    plan_guard(p, d->view->vmi);
    plan_ensure_object(p, d->view->vmi, "/status");
    api_patch_add_str(p, "/status/reason", reason);
    d->plan->reason = reason;
    move_to(d, p, PHASE_FAILED);
    plan_event(d->plan, d->view->vmi, KUBE_EVENT_WARNING, "Stopped", "%s", message);
}

/* ---- pods that nobody needs ------------------------------------------------------------------
 */

static bool migration_needs_pod(const struct decision *d, const struct api_pod *pod)
{
    const char *uid = api_map_get(&pod->meta.labels, LABEL_MIGRATION_JOB_UID);

    if (vmi_awaits_target(d->vmi) && ferry_streq(uid, d->vmi->migration.uid)) {
        return true;
    }

    for (size_t i = 0; uid && i < d->view->n_migrations; i++) {
        const struct api_migration *m = &d->view->migrations[i]->u.migration;

        if (ferry_streq(m->meta.uid, uid)) {
            return !wire_migration_is_over(m);
        }
    }
    /* The cache of pods may be ahead of the cache of migrations. */
    return uid &&
           clock_steps_elapsed(&d->view->clock, pod->meta.created_ms, d->now_ms) < ORPHAN_AGE_MS;
}

static bool pod_is_spare(const struct decision *d, const struct api_object *o)
{
    return o != d->current && !o->meta->deleted_ms && !migration_needs_pod(d, &o->u.pod);
}

/* What a settled move left: the pod that the VM went away from, or never reached. */
static void delete_spare_pods(struct decision *d)
{
    if (vmi_is_migrating(d->vmi)) {
        return; /* either pod may turn out to have the VM */
    }
    for (size_t i = 0; i < d->view->n_pods; i++) {
        const struct api_object *pod = d->view->pods[i];

        if (pod_is_spare(d, pod)) {
            plan_delete(d->plan, pod);
        } else if (pod != d->current && !pod->meta->deleted_ms) {
            plan_again(d->plan, ORPHAN_AGE_MS);
        }
    }
}

/* ---- rules -----------------------------------------------------------------------------------
 */

static bool rule_deleted(struct decision *d)
{
    const struct vmi_view *v = d->view;
    int64_t asked_ms = clock_steps_elapsed(&v->clock, d->vmi->meta.deleted_ms, d->now_ms);
    int64_t left_ms = d->vmi->grace_s * 1000 + STOP_MARGIN_MS - asked_ms;
    bool started = vmi_has_phase(d->vmi, PHASE_SCHEDULED) || vmi_has_phase(d->vmi, PHASE_RUNNING);

    if (!d->vmi->meta.deleted_ms) {
        return false;
    }
    if (v->n_pods == 0) {
        d->plan->confirm = true;
        struct api_patch *p = api_patch_new();

        plan_remove_finalizer(p, v->vmi, FINALIZER_VMI);
        plan_patch(d->plan, v->vmi, p);
        return true;
    }
    if (started && left_ms > 0) {
        plan_again(d->plan, left_ms); /* the handler's turn: it stops the guest */
        return true;
    }
    for (size_t i = 0; i < v->n_pods; i++) {
        if (!v->pods[i]->meta->deleted_ms) {
            plan_delete(d->plan, v->pods[i]);
        }
    }
    return true;
}

/* A finished VMI keeps its finished pod for whoever wants to look; nothing may still run. */
static bool rule_finished(struct decision *d)
{
    if (!wire_vmi_is_over(d->vmi)) {
        return false;
    }
    for (size_t i = 0; i < d->view->n_pods; i++) {
        const struct api_object *pod = d->view->pods[i];

        if (!wire_pod_is_over(&pod->u.pod) && !pod->meta->deleted_ms) {
            plan_delete(d->plan, pod);
        }
    }
    return true;
}

static bool has_no_pod_yet(const struct decision *d)
{
    return !d->current &&
           (vmi_has_phase(d->vmi, PHASE_NONE) || vmi_has_phase(d->vmi, PHASE_PENDING));
}

/* Pending, and why: the pod cannot be made yet. */
static void wait_pending(struct decision *d, const char *reason, const char *text)
{
    struct plan_condition c = {CONDITION_SYNCHRONIZED, "False", reason, text};
    api_cleanup_patch struct api_patch *p = api_patch_new();

    plan_guard(p, d->view->vmi);
    plan_add_finalizer(p, d->view->vmi, FINALIZER_VMI);
    if (vmi_has_phase(d->vmi, PHASE_NONE)) {
        plan_set_phase(p, d->view->vmi, PHASE_PENDING, d->now_ms);
        d->plan->phase = wire_phase_text(PHASE_PENDING);
    }
    if (plan_set_conditions(p, d->view->vmi, &d->vmi->conditions, &c, 1, d->now_ms)) {
        plan_patch_status(d->plan, d->view->vmi, ferry_take_ptr(p));
        plan_event(d->plan, d->view->vmi, KUBE_EVENT_WARNING, reason, "%s", text);
    }
    d->plan->reason = reason;
    plan_again(d->plan, CLAIM_RETRY_MS);
}

/* The pod is made when all claims are there: whether one is a device shows only then. */
static bool rule_wait_for_claim(struct decision *d)
{
    const char *missing = storage_missing_claim(d->vmi, &d->view->storage);

    if (!has_no_pod_yet(d) || !missing) {
        return false;
    }
    ferry_cleanup_free char *text = ferry_asprintf(
        "PVC %s/%s does not exist, waiting for it to appear", d->vmi->meta.namespace_, missing);
    wait_pending(d, "FailedPvcNotFound", text);
    return true;
}

static bool rule_wait_for_user(struct decision *d)
{
    if (!has_no_pod_yet(d) || !d->view->no_user) {
        return false;
    }
    wait_pending(d, "NoGuestUser", "All users that guests can run as are taken by other VMIs");
    return true;
}

/* Written down before the pod is made: launcher and scheduler, of this pod and of those that it
 * moves to, go by it until the VMI ends. NULL: it was before, or nothing is known. */
static char *pick_machine(const struct decision *d)
{
    return ferry_str_empty(d->vmi->machine_type)
               ? machine_pick(d->vmi->machine.machine_type, d->view->nodes, d->view->n_nodes)
               : NULL;
}

/* Likewise; ACCELERATOR_NONE: it was before, or the VMI's author named one. */
static enum wire_accelerator pick_accelerator(const struct decision *d)
{
    return wire_accelerator_of_vmi(&d->vmi->meta) == ACCELERATOR_NONE
               ? accelerator_pick(d->view->site, d->view->nodes, d->view->n_nodes)
               : ACCELERATOR_NONE;
}

/* The user that the VMI is to have, where its status does not say so yet. */
static bool user_is_news(const struct decision *d)
{
    return d->view->user && !(d->vmi->has_runtime_user && d->vmi->runtime_user == d->view->user);
}

static void begin_pending(struct decision *d, bool fresh, const char *machine,
                          enum wire_accelerator accelerator)
{
    struct api_patch *p = api_patch_new();

    plan_guard(p, d->view->vmi);
    if (fresh) { /* first: it makes the status */
        plan_add_finalizer(p, d->view->vmi, FINALIZER_VMI);
        plan_set_phase(p, d->view->vmi, PHASE_PENDING, d->now_ms);
        d->plan->phase = wire_phase_text(PHASE_PENDING);
    }
    if (machine) {
        ferry_cleanup_free char *json = ferry_asprintf("{\"type\":\"%s\"}", machine);

        api_patch_add_raw(p, "/status/machine", json);
    }
    if (user_is_news(d)) {
        api_patch_add_int(p, "/status/runtimeUser", d->view->user);
    }
    if (accelerator != ACCELERATOR_NONE) {
        plan_set_annotation(p, d->view->vmi, ANNOTATION_ACCELERATOR,
                            wire_accelerator_text(accelerator));
    }
    plan_patch_status(d->plan, d->view->vmi, p);
}

static bool rule_create_pod(struct decision *d)
{
    bool fresh = vmi_has_phase(d->vmi, PHASE_NONE);

    if (!has_no_pod_yet(d)) {
        return false;
    }
    ferry_cleanup_free char *machine = pick_machine(d);
    enum wire_accelerator accelerator = pick_accelerator(d);
    if (fresh || machine || accelerator != ACCELERATOR_NONE || user_is_news(d)) {
        begin_pending(d, fresh, machine, accelerator);
    }
    ferry_cleanup_free char *name = pod_name(d->vmi, NULL);
    plan_create(d->plan, API_KIND_POD, d->vmi->meta.namespace_, name,
                pod_render(&(struct pod_request){.vmi = d->vmi,
                                                 .settings = &d->view->pod,
                                                 .storage = &d->view->storage,
                                                 .machine_type = machine,
                                                 .accelerator = accelerator,
                                                 .user = d->view->user}));
    plan_event(d->plan, d->view->vmi, KUBE_EVENT_NORMAL, "SuccessfulCreate",
               "Created virtual machine pod %s", name);
    return true;
}

static bool rule_pod_lost_early(struct decision *d)
{
    if (!vmi_has_phase(d->vmi, PHASE_SCHEDULING)) {
        return false;
    }
    if (!d->current) {
        fail_vmi(d, "PodDeleted", "The launcher pod was deleted before the VM started");
        d->plan->confirm = true;
        return true;
    }
    return false;
}

static bool rule_pod_down_early(struct decision *d)
{
    const struct api_pod *pod = d->current ? &d->current->u.pod : NULL;

    if (!pod || !wire_pod_is_over(pod) || vmi_has_phase(d->vmi, PHASE_SCHEDULED) ||
        vmi_has_phase(d->vmi, PHASE_RUNNING)) {
        return false;
    }
    char text[512];
    snprintf(text, sizeof(text), "The launcher pod ended before the VM started: %.200s %.200s",
             pod->reason ? pod->reason : "", pod->message ? pod->message : "");
    fail_vmi(d, "PodFailed", text);
    return true;
}

/* Pending, or "" when a create was not followed by its phase. */
static bool rule_scheduling(struct decision *d)
{
    if (!d->current ||
        !(vmi_has_phase(d->vmi, PHASE_NONE) || vmi_has_phase(d->vmi, PHASE_PENDING))) {
        return false;
    }
    struct api_patch *p = api_patch_new();
    plan_guard(p, d->view->vmi);
    plan_add_finalizer(p, d->view->vmi, FINALIZER_VMI);
    plan_remove_condition(p, &d->vmi->conditions, CONDITION_SYNCHRONIZED);
    move_to(d, p, PHASE_SCHEDULING);
    return true;
}

bool vmi_reason_is_of_image(const char *reason)
{
    return ferry_streq(reason, VMI_ERR_IMAGE_PULL) || ferry_streq(reason, VMI_IMAGE_PULL_BACK_OFF);
}

/* What keeps its pod from running, shown on the VMI: no node, or an image that does not come. */
static bool mirror_pod(struct decision *d, struct api_patch *p)
{
    const struct api_pod *pod = &d->current->u.pod;
    const struct api_condition *c = api_condition_find(&pod->conditions, CONDITION_POD_SCHEDULED);
    const struct api_condition *sync =
        api_condition_find(&d->vmi->conditions, CONDITION_SYNCHRONIZED);
    bool waits = c && ferry_streq(c->status, "False");
    bool said = sync && vmi_reason_is_of_image(sync->reason);
    struct plan_condition want[] = {
        {CONDITION_POD_SCHEDULED, waits ? "False" : NULL, waits ? c->reason : NULL,
         waits ? c->message : NULL},
        {.type = CONDITION_SYNCHRONIZED},
    };

    if (vmi_reason_is_of_image(pod->waiting_reason)) {
        want[1].status = "False";
        want[1].reason = pod->waiting_reason;
        want[1].message = pod->waiting_message;
    }
    return plan_set_conditions(p, d->view->vmi, &d->vmi->conditions, want,
                               want[1].status || said ? 2 : 1, d->now_ms);
}

static char *active_pods_json(const struct api_pod *pod)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *active = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_str(doc, active, pod->meta.uid, pod->node_name);
    char *json = json_doc_mut_text(active, 0, NULL);
    yyjson_mut_doc_free(doc);
    return json;
}

/* What the claims are; the handler tells by it whether the VM can be moved. */
static bool set_volume_status(struct decision *d, struct api_patch *p)
{
    ferry_cleanup_free char *json = storage_volume_status(d->vmi, &d->view->storage);

    if (json) {
        api_patch_add_raw(p, "/status/volumeStatus", json);
    }
    return json != NULL;
}

static bool rule_scheduled(struct decision *d)
{
    if (!vmi_has_phase(d->vmi, PHASE_SCHEDULING)) {
        return false;
    }
    const struct api_pod *pod = &d->current->u.pod;
    api_cleanup_patch struct api_patch *p = api_patch_new();

    plan_guard(p, d->view->vmi);
    bool changed = mirror_pod(d, p);
    if (pod_is_ready(pod)) {
        ferry_cleanup_free char *active = active_pods_json(pod);

        plan_set_label(p, d->view->vmi, LABEL_NODE_NAME, pod->node_name);
        api_patch_add_str(p, "/status/nodeName", pod->node_name);
        api_patch_add_raw(p, "/status/activePods", active);
        set_volume_status(d, p);
        move_to(d, ferry_take_ptr(p), PHASE_SCHEDULED);
    } else if (changed) {
        plan_patch_status(d->plan, d->view->vmi, ferry_take_ptr(p));
    }
    return true;
}

/* From Scheduled on the handler has the VM; here is what it cannot see: that its pod went. */
static bool rule_pod_over(struct decision *d)
{
    if (vmi_is_migrating(d->vmi) || vmi_awaits_target(d->vmi)) {
        return false; /* it may be elsewhere */
    }
    if (!d->current) {
        fail_vmi(d, "PodDeleted", "The launcher pod of the running VM is gone");
        d->plan->confirm = true;
        return true;
    }
    if (!wire_pod_is_over(&d->current->u.pod)) {
        return false;
    }
    if (wire_phase_is(d->current->u.pod.phase, PHASE_SUCCEEDED)) {
        move_to(d, NULL, PHASE_SUCCEEDED);
    } else {
        fail_vmi(d, "PodFailed", "The launcher pod of the running VM ended with an error");
    }
    return true;
}

/* A node that was taken away lets go of nothing by itself, and has nothing. */
static bool rule_target_node_gone(struct decision *d)
{
    if (!vmi_awaits_target(d->vmi) || !d->view->target_node_gone) {
        return false;
    }
    ferry_cleanup_free char *label = api_pointer_escape(LABEL_TARGET_NODE_NAME);
    ferry_cleanup_free char *path = ferry_asprintf("/metadata/labels/%s", label);
    struct api_patch *p = api_patch_new();
    plan_guard(p, d->view->vmi);
    api_patch_remove(p, path);
    plan_patch(d->plan, d->view->vmi, p);
    return true;
}

/* That it was asked to leave its node, for whoever looks at conditions. */
static bool mirror_eviction(struct decision *d, struct api_patch *p)
{
    if (ferry_str_empty(d->vmi->evacuation_node)) {
        return plan_remove_condition(p, &d->vmi->conditions, CONDITION_EVICTION_REQUESTED);
    }
    ferry_cleanup_free char *text =
        ferry_asprintf("The VM was asked to leave node %s", d->vmi->evacuation_node);
    struct plan_condition c = {CONDITION_EVICTION_REQUESTED, "True", CONDITION_EVICTION_REQUESTED,
                               text};
    return plan_set_condition(p, d->view->vmi, &d->vmi->conditions, &c, d->now_ms);
}

/* A pod that is to be left need not be evicted again; one elsewhere is not meant. */
static void tell_descheduler(struct decision *d)
{
    for (size_t i = 0; i < d->view->n_pods; i++) {
        const struct api_object *pod = d->view->pods[i];
        bool left = !ferry_str_empty(d->vmi->evacuation_node) &&
                    ferry_streq(pod->u.pod.node_name, d->vmi->evacuation_node);
        if (pod->meta->deleted_ms) {
            continue;
        }
        struct api_patch *p = api_patch_new();
        plan_set_annotation(p, pod, ANNOTATION_EVICTION_IN_PROGRESS, left ? "kubevirt" : NULL);
        plan_patch(d->plan, pod, p);
    }
}

static bool rule_settled(struct decision *d)
{
    api_cleanup_patch struct api_patch *p = api_patch_new();

    delete_spare_pods(d);
    tell_descheduler(d);
    plan_guard(p, d->view->vmi);
    bool volumes = set_volume_status(d, p), evicted = mirror_eviction(d, p);
    if (volumes || evicted) {
        plan_patch_status(d->plan, d->view->vmi, ferry_take_ptr(p));
    }
    return true;
}

static const struct {
    const char *name;
    bool (*decide)(struct decision *d);
} rules[] = {
    {"deleted", rule_deleted},
    {"finished", rule_finished},
    {"wait-for-claim", rule_wait_for_claim},
    {"wait-for-user", rule_wait_for_user},
    {"create-pod", rule_create_pod},
    {"pod-lost-early", rule_pod_lost_early},
    {"pod-down-early", rule_pod_down_early},
    {"scheduling", rule_scheduling},
    {"scheduled", rule_scheduled},
    {"target-node-gone", rule_target_node_gone},
    {"pod-over", rule_pod_over},
    {"settled", rule_settled},
};

void vmi_decide(const struct vmi_view *view, int64_t now_ms, struct plan *ret)
{
    struct decision d = {.view = view,
                         .vmi = &view->vmi->u.vmi,
                         .current = vmi_current_pod(&view->vmi->u.vmi, view->pods, view->n_pods),
                         .now_ms = now_ms,
                         .plan = ret};

    *ret = (struct plan){.rule = ""};
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (rules[i].decide(&d)) {
            ret->rule = rules[i].name;
            return;
        }
    }
}
