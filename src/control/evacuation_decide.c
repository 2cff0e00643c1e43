#include "control/evacuation_decide.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "base/str.h"
#include "control/facts.h"
#include "control/names.h"

#define DRAIN_TAINT "kubevirt.io/drain"

bool evacuation_is_drained(const struct api_object *node, const char *key)
{
    yyjson_val *taints = node ? yyjson_ptr_get((yyjson_val *)node->root, "/spec/taints") : NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with(taints);

    for (yyjson_val *t; (t = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(api_json_str(t, "/key"), key ? key : DRAIN_TAINT) &&
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
    const char *own = vmi->eviction_strategy;
    const char *strategy = ferry_str_empty(own) ? v->cluster_strategy : own;

    return (ferry_streq(strategy, "LiveMigrate") ||
            ferry_streq(strategy, "LiveMigrateIfPossible")) &&
           api_condition_true(&vmi->conditions, CONDITION_LIVE_MIGRATABLE);
}

static bool has_open_migration(const struct evacuation_view *v)
{
    for (size_t i = 0; i < v->n_migrations; i++) {
        if (!migration_is_final(&v->migrations[i]->u.migration)) {
            return true;
        }
    }
    return false;
}

static size_t live_pods(const struct evacuation_view *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n_pods; i++) {
        n += !pod_is_down(&v->pods[i]->u.pod);
    }
    return n;
}

/* Made from the VMI and the last move that it had: whoever creates it again for the same reason
 * meets the first. */
static char *move_name(const struct evacuation_view *v)
{
    const struct api_meta *last = NULL;
    uint64_t h = 1469598103934665603u;

    for (size_t i = 0; i < v->n_migrations; i++) {
        const struct api_meta *m = v->migrations[i]->meta;

        if (!last || m->created_ms > last->created_ms ||
            (m->created_ms == last->created_ms && strcmp(m->uid, last->uid) > 0)) {
            last = m;
        }
    }
    const char *const parts[] = {v->vmi->meta->uid, last ? last->uid : "", v->node};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (const char *c = parts[i]; *c; c++) {
            h = (h ^ (unsigned char)*c) * 1099511628211u;
        }
        h = (h ^ '/') * 1099511628211u;
    }
    return ferry_asprintf("kubevirt-evacuation-%010llx", (unsigned long long)(h & 0xffffffffffu));
}

static char *render(const struct evacuation_view *v, const char *name)
{
    const struct api_meta *vmi = v->vmi->meta;
    bool descheduler =
        ferry_streq(api_map_get(&vmi->annotations, ANNOTATION_EVICTION_SOURCE), "descheduler");
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "kubevirt.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "VirtualMachineInstanceMigration");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", vmi->namespace_);
    yyjson_mut_val *annotations = yyjson_mut_obj_add_obj(doc, meta, "annotations");
    yyjson_mut_obj_add_str(doc, annotations, ANNOTATION_EVACUATION, v->node);
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_obj_add_str(doc, spec, "vmiName", vmi->name);
    yyjson_mut_obj_add_str(doc, spec, "priority",
                           descheduler ? "system-maintenance" : "system-critical");
    char *json = yyjson_mut_write(doc, 0, NULL);
    yyjson_mut_doc_free(doc);
    if (!json) {
        abort(); /* out of memory */
    }
    return json;
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
    if (phase_is_final(vmi->phase) || vmi->meta.deleted_ms ||
        !ferry_streq(vmi->node_name, v->node)) {
        return;
    }
    if (!ferry_str_empty(mark) && !ferry_streq(mark, v->node) && !vmi_is_migrating(vmi)) {
        clear_mark(v, mark, ret);
        return;
    }
    bool marked = ferry_streq(mark, v->node) && !vmi_is_migrating(vmi);
    if ((!v->drain && !marked) || !wants_move(v) || has_open_migration(v) || live_pods(v) > 1) {
        return;
    }
    ferry_cleanup_free char *name = move_name(v);
    ret->rule = "evacuate";
    plan_create(ret, API_KIND_MIGRATION, vmi->meta.namespace_, name, render(v, name));
    plan_event(ret, v->vmi, KUBE_EVENT_NORMAL, "SuccessfulCreate",
               "Created migration %s to leave node %s", name, v->node);
}
