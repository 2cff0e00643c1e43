#include "control/update_decide.h"

#include "api/json.h"
#include "base/str.h"
#include "control/auto_move.h"
#include "control/facts.h"
#include "control/names.h"

static bool may_move(const struct api_object *kubevirt)
{
    yyjson_val *methods = kubevirt
                              ? yyjson_ptr_get((yyjson_val *)kubevirt->root,
                                               "/spec/workloadUpdateStrategy/workloadUpdateMethods")
                              : NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with(methods);

    for (yyjson_val *m; (m = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(yyjson_get_str(m), "LiveMigrate")) {
            return true;
        }
    }
    return false;
}

static bool needs_move(const struct api_vmi *vmi)
{
    return api_condition_find(&vmi->conditions, "HotVCPUChange") ||
           api_condition_true(&vmi->conditions, "HotMemoryChange") ||
           api_condition_true(&vmi->conditions, CONDITION_MIGRATION_REQUIRED) ||
           api_condition_true(&vmi->conditions, "VolumesChange");
}

/* The reason went away before the guest did. */
static void take_back(const struct update_view *v, struct plan *ret)
{
    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_object *m = v->migrations[i];

        if (!migration_is_final(&m->u.migration) && !m->meta->deleted_ms &&
            api_map_get(&m->meta->annotations, ANNOTATION_WORKLOAD_UPDATE)) {
            ret->rule = "take-back";
            plan_delete(ret, m);
            plan_event(ret, v->vmi, KUBE_EVENT_NORMAL, "SuccessfulChangeAbortion",
                       "Aborted migration %s: the change is no longer wanted", m->meta->name);
        }
    }
}

void update_decide(const struct update_view *v, struct plan *ret)
{
    const struct api_vmi *vmi = &v->vmi->u.vmi;
    bool abort_all = api_map_get(&vmi->meta.annotations, ANNOTATION_ABORT_UPDATES) != NULL;

    *ret = (struct plan){.rule = ""};
    if (phase_is_final(vmi->phase) || vmi->meta.deleted_ms) {
        return;
    }
    if (abort_all || !needs_move(vmi)) {
        if (abort_all || !vmi->migration.target_domain_ready_ms || vmi->migration.completed) {
            take_back(v, ret);
        }
        return;
    }
    if (!may_move(v->kubevirt) || vmi_is_migrating(vmi) ||
        !api_condition_true(&vmi->conditions, CONDITION_LIVE_MIGRATABLE) ||
        auto_move_is_open(v->migrations, v->n_migrations)) {
        return;
    }
    ret->rule = "update";
    auto_move_create(&(struct auto_move){.prefix = "kubevirt-workload-update-",
                                         .annotation = ANNOTATION_WORKLOAD_UPDATE,
                                         .value = "",
                                         .priority = "user-triggered",
                                         .vmi = v->vmi,
                                         .migrations = v->migrations,
                                         .n_migrations = v->n_migrations},
                     ret);
}
