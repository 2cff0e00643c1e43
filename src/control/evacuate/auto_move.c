#include "control/evacuate/auto_move.h"

#include <string.h>

#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "json/doc.h"

bool auto_move_is_open(const struct api_object *const *migrations, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!wire_migration_is_over(&migrations[i]->u.migration)) {
            return true;
        }
    }
    return false;
}

static char *make_name(const struct auto_move *m)
{
    const struct api_meta *last = NULL;
    uint64_t h = 1469598103934665603u; /* FNV-1a */

    for (size_t i = 0; i < m->n_migrations; i++) {
        const struct api_meta *o = m->migrations[i]->meta;

        if (!last || o->created_ms > last->created_ms ||
            (o->created_ms == last->created_ms && strcmp(o->uid, last->uid) > 0)) {
            last = o;
        }
    }
    const char *const parts[] = {m->vmi->meta->uid, last ? last->uid : "", m->value};
    for (size_t i = 0; i < FERRY_COUNT(parts); i++) {
        for (const char *c = parts[i]; *c; c++) {
            h = (h ^ (unsigned char)*c) * 1099511628211u;
        }
        h = (h ^ '/') * 1099511628211u;
    }
    return ferry_asprintf("%s%010llx", m->prefix, (unsigned long long)(h & 0xffffffffffu));
}

static char *render(const struct auto_move *m, const char *name)
{
    const struct api_meta *vmi = m->vmi->meta;
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, root, "apiVersion", "kubevirt.io/v1");
    yyjson_mut_obj_add_str(doc, root, "kind", "VirtualMachineInstanceMigration");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", vmi->namespace_);
    yyjson_mut_val *annotations = yyjson_mut_obj_add_obj(doc, meta, "annotations");
    yyjson_mut_obj_add_str(doc, annotations, m->annotation, m->value);
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_obj_add_str(doc, spec, "vmiName", vmi->name);
    yyjson_mut_obj_add_str(doc, spec, "priority", m->priority);
    return json_doc_take(doc);
}

void auto_move_create(const struct auto_move *m, struct plan *ret)
{
    ferry_cleanup_free char *name = make_name(m);

    plan_create(ret, API_KIND_MIGRATION, m->vmi->meta->namespace_, name, render(m, name));
    plan_event(ret, m->vmi, KUBE_EVENT_NORMAL, "SuccessfulCreate", "Created migration %s", name);
}
