/* What the status of a VirtualMachine says. */
#include <inttypes.h>
#include <stdio.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "control/vm/vm_case.h"
#include "control/vm/vm_render.h"
#include "json/doc.h"

enum { FAIL_STEP_S = 10, FAIL_MAX_S = 300 };

static const yyjson_val *root(const struct vm_case *d)
{
    return d->view->vm->root;
}

bool vm_has_run(const struct api_vmi *vmi)
{
    yyjson_val *times = yyjson_obj_get((yyjson_val *)vmi->status, "phaseTransitionTimestamps"), *t;
    size_t i, max;

    yyjson_arr_foreach(times, i, max, t)
    {
        if (wire_phase_is(api_json_str(t, "/phase"), PHASE_RUNNING)) {
            return true;
        }
    }
    return vmi_has_phase(vmi, PHASE_RUNNING);
}

int64_t vm_retry_at(const struct vm_case *d)
{
    const char *text = api_json_str(root(d), "/status/startFailure/retryAfterTimestamp");
    int64_t at = 0;

    return text && api_time_parse(text, &at, NULL) == 0 ? at : 0;
}

/* ---- pieces ----------------------------------------------------------------------------------
 */

static void set_requests(struct vm_case *d, struct api_patch *p)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)root(d), "/status/stateChangeRequests"), *r;
    ferry_cleanup_buf struct ferry_buf left = {0};
    bool starts = false;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, r)
    {
        ferry_cleanup_free char *json = i < d->requests_done ? NULL : json_doc_val_text(r, 0, NULL);

        ferry_buf_printf(&left, "%s%s", left.len && json ? "," : "", json ? json : "");
        starts = starts || (json && ferry_streq(api_json_str(r, "/action"), "Start"));
    }
    if (d->add_start && !starts) {
        ferry_buf_printf(&left, "%s{\"action\":\"Start\"}", left.len ? "," : "");
    }
    ferry_cleanup_free char *json = left.len ? ferry_asprintf("[%s]", left.data) : NULL;
    plan_set_value(p, d->view->vm, "/status/stateChangeRequests", json);
}

/* Spread over half of the time again, so that many VMs do not come back at once. */
static int64_t delay_s(int64_t fails, const char *uid)
{
    int64_t s = FAIL_STEP_S * fails * fails;
    unsigned h = 0;

    for (const char *c = uid; *c; c++) {
        h = h * 31 + (unsigned char)*c;
    }
    s += (int64_t)(h % (unsigned)(s / 2 + 1));
    return s < FAIL_MAX_S ? s : FAIL_MAX_S;
}

static void set_start_failure(struct vm_case *d, struct api_patch *p)
{
    const char *path = "/status/startFailure";
    int64_t fails = api_json_int(root(d), "/status/startFailure/consecutiveFailCount", 0);
    char when[FERRY_RFC3339_SIZE];

    if (ferry_streq(d->vm->run_strategy, "Halted") || ferry_streq(d->vm->run_strategy, "Manual") ||
        (d->vmi && vm_has_run(d->vmi))) {
        plan_set_value(p, d->view->vm, path, NULL);
        return;
    }
    if (!d->vmi || !vmi_has_phase(d->vmi, PHASE_FAILED) ||
        ferry_streq(api_json_str(root(d), "/status/startFailure/lastFailedVMIUID"),
                    d->vmi->meta.uid)) {
        return;
    }
    fails = fails < 100 ? fails + 1 : fails;
    ferry_cleanup_free char *json =
        ferry_asprintf("{\"consecutiveFailCount\":%" PRId64
                       ",\"lastFailedVMIUID\":\"%s\",\"retryAfterTimestamp\":\"%s\"}",
                       fails, d->vmi->meta.uid,
                       ferry_rfc3339(d->now_ms + delay_s(fails, d->vmi->meta.uid) * 1000, when));
    plan_set_value(p, d->view->vm, path, json);
}

static struct plan_condition ready_condition(const struct vm_case *d)
{
    const struct api_condition *c =
        d->vmi ? api_condition_find(&d->vmi->conditions, CONDITION_READY) : NULL;

    if (c) {
        return (struct plan_condition){CONDITION_READY, c->status, c->reason, c->message};
    }
    if (d->vmi && vmi_has_phase(d->vmi, PHASE_RUNNING)) {
        return (struct plan_condition){.type = CONDITION_READY, .status = "True"};
    }
    return (struct plan_condition){
        CONDITION_READY, "False", d->vmi ? "GuestNotRunning" : "VMINotExists",
        d->vmi ? "Guest VM is not reported as running" : "VMI does not exist"};
}

/* The template is no longer what the instance was made from. */
static struct plan_condition restart_condition(const struct vm_case *d)
{
    const char *made_from =
        d->vmi ? api_map_get(&d->vmi->meta.annotations, ANNOTATION_VM_TEMPLATE) : NULL;
    char tag[VM_TEMPLATE_TAG];

    if (d->volumes.answer == VOLUMES_REFUSED) {
        return (struct plan_condition){CONDITION_RESTART_REQUIRED, "True", "RestartRequired",
                                       d->volumes.message};
    }
    if (!made_from || ferry_streq(made_from, vm_template_tag(d->view->vm, tag))) {
        return (struct plan_condition){.type = CONDITION_RESTART_REQUIRED};
    }
    return (struct plan_condition){CONDITION_RESTART_REQUIRED, "True", "RestartRequired",
                                   "the template was changed in a way that needs a restart"};
}

/* What was being copied when the instance was last seen, and is not back at its source since. */
bool vm_needs_recovery(const struct vm_case *d)
{
    bool over = !d->vmi || wire_vmi_is_over(d->vmi);

    for (size_t i = 0; over && i < d->vm->n_migrated_volumes; i++) {
        const struct api_migrated_volume *m = &d->vm->migrated_volumes[i];

        for (size_t k = 0; k < d->vm->machine.n_volumes; k++) {
            const struct api_vmi_volume *v = &d->vm->machine.volumes[k];

            if (ferry_streq(v->name, m->volume) &&
                !ferry_streq(storage_claim_name(v), m->source.claim)) {
                return true;
            }
        }
    }
    return false;
}

static struct plan_condition recovery_condition(const struct vm_case *d)
{
    if (!vm_needs_recovery(d)) {
        return (struct plan_condition){.type = CONDITION_MANUAL_RECOVERY};
    }
    return (struct plan_condition){
        CONDITION_MANUAL_RECOVERY, "True", "VolumeMigrationUnfinished",
        "the VM ended while its volumes were being migrated: set them back to their sources"};
}

/* The VM remembers what is being copied, also when its instance is gone. */
static void set_volume_update(struct vm_case *d, struct api_patch *p)
{
    yyjson_val *list =
        d->vmi ? yyjson_obj_get((yyjson_val *)d->vmi->status, "migratedVolumes") : NULL;
    bool lives = d->vmi && !wire_vmi_is_over(d->vmi);

    if (yyjson_arr_size(list) > 0) {
        ferry_cleanup_free char *text = json_doc_val_text(list, 0, NULL);
        ferry_cleanup_free char *json =
            ferry_asprintf("{\"volumeMigrationState\":{\"migratedVolumes\":%s}}", text);

        plan_set_value(p, d->view->vm, "/status/volumeUpdateState", json);
    } else if (lives || !vm_needs_recovery(d)) {
        plan_set_value(p, d->view->vm, "/status/volumeUpdateState", NULL);
    }
}

/* Those of the VM alone; all others are its instance's, and go with it. */
static bool is_own(const char *type)
{
    static const char *const own[] = {CONDITION_READY, CONDITION_FAILURE,
                                      CONDITION_RESTART_REQUIRED, CONDITION_MANUAL_RECOVERY};

    for (size_t i = 0; i < FERRY_COUNT(own); i++) {
        if (ferry_streq(own[i], type)) {
            return true;
        }
    }
    return false;
}

/* The instance's conditions as they are; those of `d->vm` that it does not have are taken away. */
static size_t mirror(const struct vm_case *d, struct plan_condition *ret)
{
    const struct api_conditions *old = &d->vm->conditions,
                                *has = d->vmi ? &d->vmi->conditions : NULL;
    size_t n = 0;

    for (size_t i = 0; has && i < has->n; i++) {
        const struct api_condition *c = &has->items[i];

        if (!is_own(c->type)) {
            ret[n++] = (struct plan_condition){c->type, c->status, c->reason, c->message};
        }
    }
    for (size_t i = 0; i < old->n; i++) {
        const char *type = old->items[i].type;

        if (!is_own(type) && !(has && api_condition_find(has, type))) {
            ret[n++] = (struct plan_condition){.type = type};
        }
    }
    return n;
}

enum { OWN_CONDITIONS = 4 };

static void set_conditions(struct vm_case *d, struct api_patch *p)
{
    size_t most = OWN_CONDITIONS + d->vm->conditions.n + (d->vmi ? d->vmi->conditions.n : 0), n = 0;
    ferry_cleanup_free struct plan_condition *want = ferry_xcalloc(most, sizeof(*want));
    /* What kept it from starting stands until it starts. */
    bool stands = !d->refusal && !d->vmi && d->action == VM_START;

    want[n++] = ready_condition(d);
    n += mirror(d, want + n);
    want[n++] = restart_condition(d);
    want[n++] = recovery_condition(d);
    if (!stands) {
        want[n++] = (struct plan_condition){CONDITION_FAILURE, d->refusal ? "True" : NULL,
                                            d->refusal_reason ? d->refusal_reason : "FailedCreate",
                                            d->refusal};
    }
    plan_set_conditions(p, d->view->vm, &d->vm->conditions, want, n, d->now_ms);
}

static void set_bool(struct vm_case *d, struct api_patch *p, const char *path, bool value)
{
    plan_set_value(p, d->view->vm, path, value ? "true" : NULL);
}

static void set_text(struct vm_case *d, struct api_patch *p, const char *path, const char *value)
{
    ferry_cleanup_free char *json = ferry_asprintf("\"%s\"", value); /* ours: nothing to escape */

    plan_set_value(p, d->view->vm, path, json);
}

/* What the VM no longer names it no longer has; vm_sizing.c writes the others. */
static void forget_copies(struct vm_case *d, struct api_patch *p)
{
    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (!matcher_read(root(d), of, &m)) {
            plan_set_value(p, d->view->vm, matcher_status_path(of), NULL);
        }
    }
}

void vm_write_status(struct vm_case *d)
{
    struct api_patch *p = api_patch_new();
    char generation[32];

    plan_ensure_object(p, d->view->vm, "/status");
    set_bool(d, p, "/status/created", d->vmi != NULL);
    set_bool(d, p, "/status/ready", ferry_streq(ready_condition(d).status, "True"));
    set_text(d, p, "/status/printableStatus", vm_printable(d));
    /* What is followed already; a start that is due is not. */
    if (!d->refusal && !(d->action == VM_START && !d->vmi)) {
        set_text(d, p, "/status/runStrategy", d->vm->run_strategy);
    }
    snprintf(generation, sizeof(generation), "%" PRId64,
             api_json_int(root(d), "/metadata/generation", 0));
    plan_set_value(p, d->view->vm, "/status/desiredGeneration", generation);
    plan_set_value(p, d->view->vm, "/status/observedGeneration", generation);
    set_requests(d, p);
    set_start_failure(d, p);
    set_volume_update(d, p);
    forget_copies(d, p);
    set_conditions(d, p);
    if (!api_patch_empty(p)) {
        plan_guard(p, d->view->vm);
    }
    plan_patch_status(d->plan, d->view->vm, p);
}
