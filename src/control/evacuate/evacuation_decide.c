#include "control/evacuate/evacuation_decide.h"

#include "api/admit.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/evacuate/auto_move.h"
#include "control/plan/facts.h"

enum { PODS_AGAIN_MS = 1000 };

bool evacuation_is_drained(const struct api_object *node, const char *key)
{
    yyjson_val *taints = node ? yyjson_ptr_get((yyjson_val *)node->root, "/spec/taints") : NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with(taints);

    for (yyjson_val *t; (t = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(api_json_str(t, "/key"), key ? key : TAINT_DRAIN) &&
            ferry_streq(api_json_str(t, "/effect"), "NoSchedule")) {
            return true;
        }
    }
    return false;
}

/* Does the VMI want to be moved rather than stopped? */
static bool wants_move(const struct evacuation_view *v)
{
    const struct api_vmi *vmi = &v->vmi->u.vmi;
    const char *strategy = api_eviction_strategy(vmi->eviction_strategy, v->cluster_strategy);

    return (ferry_streq(strategy, "LiveMigrate") ||
            ferry_streq(strategy, "LiveMigrateIfPossible")) &&
           api_condition_true(&vmi->conditions, CONDITION_LIVE_MIGRATABLE);
}

static size_t live_pods(const struct evacuation_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_pods; i++) {
        n += !wire_pod_is_over(&v->pods[i]->u.pod);
    }
    return n;
}

/* A mark of a node that the VM has left. */
static void clear_mark(const struct evacuation_view *v, const char *mark, struct plan *ret)
{
    struct api_patch *p = api_patch_new();

    api_patch_test_str(p, "/status/evacuationNodeName", mark);
    api_patch_test_str(p, "/status/nodeName", v->node);
    api_patch_remove(p, "/status/evacuationNodeName");
    plan_patch_status(ret, v->vmi, p);
    ret->rule = "left";
}

void evacuation_decide(const struct evacuation_view *v, int64_t now_ms, struct plan *ret)
{
    const struct api_vmi *vmi = &v->vmi->u.vmi;
    const char *mark = vmi->status ? api_json_str(vmi->status, "/evacuationNodeName") : NULL;
    (void)now_ms;

    *ret = (struct plan){.rule = ""};
    if (wire_vmi_is_over(vmi) || vmi->meta.deleted_ms || !ferry_streq(vmi->node_name, v->node)) {
        return;
    }
    if (!ferry_str_empty(mark) && !ferry_streq(mark, v->node) && !vmi_is_migrating(vmi)) {
        clear_mark(v, mark, ret);
        return;
    }
    bool marked = ferry_streq(mark, v->node) && !vmi_is_migrating(vmi);
    if ((!v->drain && !marked) || !wants_move(v) ||
        auto_move_is_open(v->migrations, v->n_migrations)) {
        return;
    }
    if (live_pods(v) > 1) { /* what the last try left goes, and tells nobody here */
        plan_again(ret, PODS_AGAIN_MS);
        return;
    }
    bool descheduler =
        ferry_streq(api_map_get(&vmi->meta.annotations, ANNOTATION_EVICTION_SOURCE), "descheduler");
    ret->rule = "evacuate";
    auto_move_create(
        &(struct auto_move){.prefix = "kubevirt-evacuation-",
                            .annotation = ANNOTATION_EVACUATION,
                            .value = v->node,
                            .priority = descheduler ? "system-maintenance" : "system-critical",
                            .vmi = v->vmi,
                            .migrations = v->migrations,
                            .n_migrations = v->n_migrations},
        ret);
}
