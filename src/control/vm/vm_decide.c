#include "control/vm/vm_decide.h"

#include <string.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "control/vm/vm_case.h"
#include "control/vm/vm_render.h"

enum { VOLUMES_RETRY_MS = 10000 };

/* ---- requests: what "start", "stop" and "restart" leave in the status ------------------------
 */

static yyjson_val *request_at(const struct vm_case *d, size_t i)
{
    return yyjson_arr_get(
        yyjson_ptr_get((yyjson_val *)d->view->vm->root, "/status/stateChangeRequests"), i);
}

static bool is_request(yyjson_val *r, const char *action)
{
    return r && ferry_streq(api_json_str(r, "/action"), action);
}

static bool names_instance(yyjson_val *r, const struct api_vmi *vmi)
{
    return vmi && ferry_streq(api_json_str(r, "/uid"), vmi->meta.uid);
}

/* A start is done when there is an instance that goes on, a stop when the one it names is gone. */
static void skip_done_requests(struct vm_case *d)
{
    bool goes_on = d->vmi && !d->vmi->meta.deleted_ms && !wire_vmi_is_over(d->vmi);

    for (yyjson_val *r; (r = request_at(d, d->requests_done)); d->requests_done++) {
        bool open = is_request(r, "Stop") ? names_instance(r, d->vmi) : !goes_on;

        if (open) {
            return;
        }
    }
}

static bool stop_is_asked(const struct vm_case *d)
{
    return is_request(request_at(d, d->requests_done), "Stop");
}

static bool start_is_asked(const struct vm_case *d)
{
    return is_request(request_at(d, d->requests_done), "Start");
}

/* ---- run strategies --------------------------------------------------------------------------
 */

static enum vm_action always(struct vm_case *d)
{
    if (!d->vmi) {
        return VM_START;
    }
    return stop_is_asked(d) || wire_vmi_is_over(d->vmi) ? VM_STOP : VM_NOTHING;
}

static enum vm_action rerun_on_failure(struct vm_case *d)
{
    if (d->vmi) {
        bool failed = vmi_has_phase(d->vmi, PHASE_FAILED);

        d->add_start = failed && !d->vmi->meta.deleted_ms;
        return stop_is_asked(d) || wire_vmi_is_over(d->vmi) ? VM_STOP : VM_NOTHING;
    }
    /* It has just been given this strategy, or a start is asked for; else it ended by itself. */
    const char *followed = api_json_str(d->view->vm->root, "/status/runStrategy");
    return start_is_asked(d) || !ferry_streq(followed, d->vm->run_strategy) ? VM_START : VM_NOTHING;
}

static enum vm_action manual(struct vm_case *d)
{
    if (d->vmi) {
        return stop_is_asked(d) ? VM_STOP : VM_NOTHING;
    }
    return start_is_asked(d) ? VM_START : VM_NOTHING;
}

static enum vm_action halted(struct vm_case *d)
{
    if (d->vmi) {
        return VM_STOP;
    }
    return start_is_asked(d) ? VM_SET_ALWAYS : VM_NOTHING;
}

static enum vm_action once(struct vm_case *d)
{
    return d->vmi ? VM_NOTHING : VM_START;
}

static enum vm_action follow_strategy(struct vm_case *d)
{
    static const struct {
        const char *name;
        enum vm_action (*decide)(struct vm_case *d);
    } strategies[] = {
        {"Always", always}, {"RerunOnFailure", rerun_on_failure},
        {"Manual", manual}, {"Halted", halted},
        {"Once", once},
    };

    for (size_t i = 0; i < FERRY_COUNT(strategies); i++) {
        if (ferry_streq(d->vm->run_strategy, strategies[i].name)) {
            return strategies[i].decide(d);
        }
    }
    d->refusal = "spec.runStrategy is none that is known";
    return VM_NOTHING;
}

/* ---- what follows ----------------------------------------------------------------------------
 */

static void start(struct vm_case *d)
{
    const struct api_object *vm = d->view->vm;

    if (vm_needs_recovery(d)) {
        d->action = VM_NOTHING;
        return;
    }
    int64_t retry_at = vm_retry_at(d);
    if (retry_at > d->now_ms) {
        d->backing_off = true;
        d->action = VM_NOTHING;
        plan_again(d->plan, retry_at - d->now_ms);
        return;
    }
    struct instancetype_pair sizing;
    if (!vm_sizing(d, &sizing)) {
        return;
    }
    /* Rests on there being no instance, and on requests that may have been met meanwhile. */
    d->plan->confirm = true;
    plan_create(d->plan, API_KIND_VMI, vm->meta->namespace_, vm->meta->name,
                vm_render(vm, &sizing));
    plan_event(d->plan, vm, KUBE_EVENT_NORMAL, "SuccessfulCreate",
               "Started the virtual machine by creating the new virtual machine instance %s",
               vm->meta->name);
}

static void stop(struct vm_case *d)
{
    if (!d->vmi || d->vmi->meta.deleted_ms) {
        return; /* gone, or on its way */
    }
    plan_delete(d->plan, d->view->vmi);
    plan_event(d->plan, d->view->vm, KUBE_EVENT_NORMAL, "SuccessfulDelete",
               "Stopped the virtual machine by deleting the virtual machine instance %s",
               d->vmi->meta.name);
}

/* A start that was asked for of one that is halted: it is to run from now on. */
static void set_always(struct vm_case *d)
{
    struct api_patch *p = api_patch_new();

    plan_guard(p, d->view->vm);
    if (d->vm->has_running) {
        api_patch_add_bool(p, "/spec/running", true);
    } else {
        api_patch_add_str(p, "/spec/runStrategy", "Always");
    }
    plan_patch(d->plan, d->view->vm, p);
}

static void act(struct vm_case *d)
{
    switch (d->action) {
    case VM_START:
        start(d);
        break;
    case VM_STOP:
        stop(d);
        break;
    case VM_SET_ALWAYS:
        set_always(d);
        break;
    case VM_NOTHING:
        break;
    }
}

/* ---- networks ----------------------------------------------------------------------------------
 */

static const char *attachment_of(yyjson_val *network)
{
    return yyjson_get_str(yyjson_ptr_get(network, "/multus/networkName"));
}

static const char *wanted_attachment(yyjson_val *wanted, const char *name)
{
    yyjson_val *n;
    size_t i, max;

    yyjson_arr_foreach(wanted, i, max, n)
    {
        if (ferry_streq(api_json_str(n, "/name"), name)) {
            return attachment_of(n);
        }
    }
    return NULL;
}

/* Another network under the same name: the instance gets there by a move (network_decide()). */
static void follow_networks(const struct vm_case *d, struct plan *actions)
{
    yyjson_val *wanted = yyjson_ptr_get((yyjson_val *)d->vm->template_, "/spec/networks"), *n;
    struct api_patch *p = api_patch_new();
    bool changed = false;
    size_t i, max;

    plan_guard(p, d->view->vmi);
    yyjson_arr_foreach(yyjson_obj_get((yyjson_val *)d->vmi->spec, "networks"), i, max, n)
    {
        const char *has = attachment_of(n);
        const char *want = wanted_attachment(wanted, api_json_str(n, "/name"));

        if (has && want && !ferry_streq(has, want)) {
            ferry_cleanup_free char *path =
                ferry_asprintf("/spec/networks/%zu/multus/networkName", i);

            api_patch_add_str(p, path, want);
            changed = true;
        }
    }
    if (changed) {
        plan_patch(actions, d->view->vmi, p);
    } else {
        api_patch_free(p);
    }
}

/* ---- rules -----------------------------------------------------------------------------------
 */

static bool rule_deleted(struct vm_case *d)
{
    if (!d->vm->meta.deleted_ms) {
        return false;
    }
    if (d->vmi) {
        vm_write_status(d);
        stop(d);
        return true;
    }
    struct api_patch *p = api_patch_new();
    d->plan->confirm = true;
    plan_remove_finalizer(p, d->view->vm, FINALIZER_VM);
    plan_patch(d->plan, d->view->vm, p);
    return true;
}

static bool rule_new(struct vm_case *d)
{
    struct api_patch *p = api_patch_new();

    plan_add_finalizer(p, d->view->vm, FINALIZER_VM);
    plan_patch(d->plan, d->view->vm, p);
    return d->plan->n > 0;
}

static bool rule_foreign(struct vm_case *d)
{
    if (!d->view->vmi || d->vmi) {
        return false;
    }
    d->refusal = "there is an instance of this name that is not the VM's";
    vm_write_status(d);
    return true;
}

static bool rule_sizing(struct vm_case *d)
{
    return vm_keep_copies(d);
}

/* What keeps it from starting is an event when it is news. */
static void tell_refusal(struct vm_case *d)
{
    if (d->refusal && d->plan->n > 0) {
        plan_event(d->plan, d->view->vm, KUBE_EVENT_WARNING,
                   d->refusal_reason ? d->refusal_reason : "FailedCreate",
                   "Error creating virtual machine instance: %s", d->refusal);
    }
}

/* The status is written before anything is done: what it holds decides what comes next. */
static bool rule_strategy(struct vm_case *d)
{
    plan_cleanup struct plan actions = {.rule = ""};
    struct plan *whole = d->plan;

    skip_done_requests(d);
    d->action = follow_strategy(d);
    d->plan = &actions;
    if (d->vmi && !d->vmi->meta.deleted_ms && !wire_vmi_is_over(d->vmi)) {
        const struct volume_view v = {.vm = d->view->vm,
                                      .vmi = d->view->vmi,
                                      .storage = &d->view->storage,
                                      .moves_open = d->view->moves_open};

        d->volumes = volume_judge(&v);
        volume_decide(&v, &d->volumes, d->now_ms, &actions);
        if (d->volumes.answer != VOLUMES_SAME) {
            plan_again(&actions, VOLUMES_RETRY_MS); /* a claim may appear, a move may end */
        }
        if (!vmi_is_migrating(d->vmi)) {
            follow_networks(d, &actions);
        }
    }
    act(d);
    d->plan = whole;
    vm_write_status(d);
    tell_refusal(d);
    plan_append(whole, &actions);
    return true;
}

static const struct {
    const char *name;
    bool (*decide)(struct vm_case *d);
} rules[] = {
    {"deleted", rule_deleted}, {"new", rule_new},           {"foreign", rule_foreign},
    {"sizing", rule_sizing},   {"strategy", rule_strategy},
};

static struct vm_case make_case(const struct vm_view *view, int64_t now_ms, struct plan *plan)
{
    const struct api_object *vmi = view->vmi;
    struct vm_case d = {.view = view, .vm = &view->vm->u.vm, .now_ms = now_ms, .plan = plan};

    for (size_t i = 0; vmi && i < vmi->meta->n_owners; i++) {
        if (vmi->meta->owners[i].controller &&
            ferry_streq(vmi->meta->owners[i].uid, view->vm->meta->uid)) {
            d.vmi = &vmi->u.vmi;
        }
    }
    return d;
}

void vm_decide(const struct vm_view *view, int64_t now_ms, struct plan *ret)
{
    struct vm_case d = make_case(view, now_ms, ret);

    *ret = (struct plan){.rule = ""};
    for (size_t i = 0; i < FERRY_COUNT(rules); i++) {
        if (rules[i].decide(&d)) {
            ret->rule = rules[i].name;
            return;
        }
    }
}

void vm_decide_refused(const struct vm_view *view, const char *message, int64_t now_ms,
                       struct plan *ret)
{
    struct vm_case d = make_case(view, now_ms, ret);

    *ret = (struct plan){.rule = "refused"};
    d.refusal = message;
    skip_done_requests(&d);
    d.action = VM_START;
    vm_write_status(&d);
    if (ret->n > 0) {
        plan_event(ret, view->vm, KUBE_EVENT_WARNING, "FailedCreate",
                   "Error creating virtual machine instance: %s", message);
    }
}
