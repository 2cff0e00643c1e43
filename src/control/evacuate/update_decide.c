#include "control/evacuate/update_decide.h"

#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/evacuate/auto_move.h"
#include "control/plan/facts.h"

enum { BATCH_SIZE = 10, BATCH_MS = 60000, AGAIN_MS = 5000 };

struct pass {
    const struct update_view *view;
    bool may_move, may_evict;
    size_t batch;
    int64_t interval_ms;
    struct plan *plan;
};

/* ---- settings --------------------------------------------------------------------------------
 */

static bool has_method(const struct api_object *kubevirt, const char *method)
{
    yyjson_val *methods = kubevirt
                              ? yyjson_ptr_get((yyjson_val *)kubevirt->root,
                                               "/spec/workloadUpdateStrategy/workloadUpdateMethods")
                              : NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with(methods);

    for (yyjson_val *m; (m = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(yyjson_get_str(m), method)) {
            return true;
        }
    }
    return false;
}

/* A duration as Kubernetes writes it: "1m30s". Negative when it is none. */
static int64_t duration_ms(const char *text)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    int64_t total = 0;

    for (const char *at = text; *at;) {
        char *end = NULL;
        double n = strtod(at, &end);
        size_t i = 0;

        while (i < 4 && strncmp(end, units[i].unit, strlen(units[i].unit)) != 0) {
            i++;
        }
        if (end == at || n < 0 || n > 1e9 || i == 4) {
            return -1;
        }
        total += (int64_t)(n * (double)units[i].ms);
        at = end + strlen(units[i].unit);
    }
    return text[0] ? total : -1;
}

/* KubeVirt's operator is at work: what is outdated is not known yet. */
static bool is_deploying(const struct api_object *kubevirt)
{
    const char *phase = api_json_str(kubevirt->root, "/status/phase");
    const char *seen = api_json_str(kubevirt->root, "/status/observedDeploymentID");
    const char *wanted = api_json_str(kubevirt->root, "/status/targetDeploymentID");

    return (phase && strcmp(phase, "Deployed") != 0) ||
           (seen && wanted && strcmp(seen, wanted) != 0);
}

/* ---- one VM ----------------------------------------------------------------------------------
 */

static bool needs_move(const struct api_vmi *vmi)
{
    return api_condition_find(&vmi->conditions, CONDITION_VCPU_CHANGE) ||
           api_condition_true(&vmi->conditions, CONDITION_MEMORY_CHANGE) ||
           api_condition_true(&vmi->conditions, CONDITION_MIGRATION_REQUIRED) ||
           api_condition_true(&vmi->conditions, CONDITION_VOLUMES_CHANGE);
}

static bool told_to_abort(const struct api_vmi *vmi)
{
    return api_map_get(&vmi->meta.annotations, ANNOTATION_ABORT_UPDATES) != NULL;
}

bool update_is_wanted(const struct api_vmi *vmi)
{
    return needs_move(vmi) || told_to_abort(vmi);
}

bool update_is_outdated(const struct api_object *vmi, const struct api_object *pod,
                        const char *launcher_image)
{
    const char *image = api_json_str(vmi->root, "/status/launcherContainerImageVersion");

    if (ferry_str_empty(image) && pod) {
        image = api_json_str(pod->root, "/spec/containers/0/image");
    }
    return !ferry_str_empty(image) && launcher_image && strcmp(image, launcher_image) != 0;
}

static bool is_update(const struct api_object *m)
{
    return api_map_get(&m->meta->annotations, ANNOTATION_WORKLOAD_UPDATE) != NULL;
}

/* The reason went away before the guest did. */
static void take_back(struct pass *p, const struct update_vm *vm)
{
    const struct api_migration_state *s = &vm->vmi->u.vmi.migration;

    if (s->target_domain_ready_ms && !s->completed && !told_to_abort(&vm->vmi->u.vmi)) {
        return;
    }
    for (size_t i = 0; i < vm->n_migrations; i++) {
        const struct api_object *m = vm->migrations[i];

        if (!wire_migration_is_over(&m->u.migration) && !m->meta->deleted_ms && is_update(m)) {
            plan_delete(p->plan, m);
            plan_event(p->plan, vm->vmi, KUBE_EVENT_NORMAL, "SuccessfulChangeAbortion",
                       "Aborted migration %s: the change is no longer wanted", m->meta->name);
        }
    }
}

enum todo { NOTHING, TAKE_BACK, MOVE_FOR_CHANGE, MOVE_FOR_IMAGE, EVICT };

static enum todo judge(const struct pass *p, const struct update_vm *vm, bool outdated)
{
    const struct api_vmi *vmi = &vm->vmi->u.vmi;
    bool change = needs_move(vmi);

    if (wire_vmi_is_over(vmi) || vmi->meta.deleted_ms) {
        return NOTHING;
    }
    if (told_to_abort(vmi) || (!change && !outdated)) {
        return TAKE_BACK;
    }
    if (!vmi_has_phase(vmi, PHASE_RUNNING) || vmi_is_migrating(vmi) ||
        auto_move_is_open(vm->migrations, vm->n_migrations)) {
        return NOTHING;
    }
    bool migratable = api_condition_true(&vmi->conditions, CONDITION_LIVE_MIGRATABLE) ||
                      api_condition_true(&vmi->conditions, CONDITION_VOLUMES_CHANGE);
    if (p->may_move && migratable) {
        return change ? MOVE_FOR_CHANGE : MOVE_FOR_IMAGE;
    }
    return p->may_evict && outdated && vm->pod && !vm->pod->meta->deleted_ms ? EVICT : NOTHING;
}

/* ---- the pass --------------------------------------------------------------------------------
 */

static void make_moves(struct pass *p, const enum todo *todo, enum todo which, size_t *room)
{
    for (size_t i = 0; i < p->view->n; i++) {
        const struct update_vm *vm = &p->view->vms[i];

        if (todo[i] != which) {
            continue;
        }
        if (*room == 0) {
            plan_again(p->plan, AGAIN_MS);
            return;
        }
        (*room)--;
        auto_move_create(&(struct auto_move){.prefix = "kubevirt-workload-update-",
                                             .annotation = ANNOTATION_WORKLOAD_UPDATE,
                                             .value = "",
                                             .priority = which == MOVE_FOR_CHANGE
                                                             ? "user-triggered"
                                                             : "system-critical",
                                             .vmi = vm->vmi,
                                             .migrations = vm->migrations,
                                             .n_migrations = vm->n_migrations},
                         p->plan);
    }
}

static bool evict_some(struct pass *p, const enum todo *todo, int64_t now_ms)
{
    int64_t next = p->view->last_eviction_ms ? p->view->last_eviction_ms + p->interval_ms : 0;
    size_t n = 0;

    for (size_t i = 0; i < p->view->n; i++) {
        const struct update_vm *vm = &p->view->vms[i];

        if (todo[i] != EVICT) {
            continue;
        }
        if (next > now_ms || n == p->batch) {
            plan_again(p->plan, next > now_ms ? next - now_ms : p->interval_ms);
            break;
        }
        n++;
        plan_evict(p->plan, vm->pod);
        plan_event(p->plan, vm->vmi, KUBE_EVENT_NORMAL, "SuccessfulEvict",
                   "Evicted the pod %s, whose launcher is outdated", vm->pod->meta->name);
    }
    return n > 0;
}

static void report_outdated(struct pass *p, size_t outdated)
{
    const struct api_object *kubevirt = p->view->kubevirt;
    int64_t told =
        api_json_int(kubevirt->root, "/status/outdatedVirtualMachineInstanceWorkloads", -1);

    if (told == (int64_t)outdated || (told < 0 && outdated == 0)) {
        return;
    }
    struct api_patch *patch = api_patch_new();
    plan_ensure_object(patch, kubevirt, "/status");
    api_patch_add_int(patch, "/status/outdatedVirtualMachineInstanceWorkloads", (int64_t)outdated);
    plan_patch_status_of(p->plan, api_resource_find("kubevirt.io", "v1", "kubevirts"), kubevirt,
                         patch);
}

static void read_settings(struct pass *p)
{
    const yyjson_val *root = p->view->kubevirt->root;
    const char *interval = api_json_str(root, "/spec/workloadUpdateStrategy/batchEvictionInterval");
    int64_t ms = interval ? duration_ms(interval) : -1;
    int64_t size = api_json_int(root, "/spec/workloadUpdateStrategy/batchEvictionSize", BATCH_SIZE);

    p->may_move = has_method(p->view->kubevirt, "LiveMigrate");
    p->may_evict = has_method(p->view->kubevirt, "Evict");
    p->batch = size > 0 ? (size_t)size : BATCH_SIZE;
    p->interval_ms = ms >= 0 ? ms : BATCH_MS;
}

void update_decide(const struct update_view *view, int64_t now_ms, struct plan *ret,
                   struct update_result *result)
{
    struct pass p = {.view = view, .plan = ret};
    ferry_cleanup_free enum todo *todo = ferry_xcalloc(view->n + 1, sizeof(*todo));
    size_t room = view->room;

    *ret = (struct plan){.rule = "update"};
    *result = (struct update_result){0};
    if (view->kubevirt && is_deploying(view->kubevirt)) {
        ret->rule = "deploying";
        return;
    }
    if (view->kubevirt) {
        read_settings(&p);
    }
    for (size_t i = 0; i < view->n; i++) {
        const struct update_vm *vm = &view->vms[i];
        bool outdated = !wire_vmi_is_over(&vm->vmi->u.vmi) &&
                        update_is_outdated(vm->vmi, vm->pod, view->launcher_image);

        result->outdated += outdated;
        todo[i] = judge(&p, vm, outdated);
        if (todo[i] == TAKE_BACK) {
            take_back(&p, vm);
        }
    }
    make_moves(&p, todo, MOVE_FOR_CHANGE, &room);
    make_moves(&p, todo, MOVE_FOR_IMAGE, &room);
    result->evicts = evict_some(&p, todo, now_ms);
    if (view->kubevirt) {
        report_outdated(&p, result->outdated);
    }
}
