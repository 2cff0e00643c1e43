/* How a migration shows in the ledger of limits. */
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/migration/migration_decide.h"
#include "control/plan/facts.h"

static char *configuration(const struct migration_view *v)
{
    const struct policy_sources sources = {
        .kubevirt = v->kubevirt,
        .policies = v->policies,
        .n_policies = v->n_policies,
        .ns_labels = v->namespace_ ? &v->namespace_->meta->labels : NULL,
        .vmi_labels = &v->vmi->meta->labels,
    };

    return policy_resolve(&sources, NULL, NULL);
}

/* The defaults are always fine. */
static bool has_policy(const struct migration_view *v)
{
    ferry_cleanup_free char *json = v->kubevirt || v->n_policies ? configuration(v) : NULL;

    return json || (!v->kubevirt && !v->n_policies);
}

/* Only looked up where there is a budget to keep. */
static int64_t bandwidth(const struct migration_view *v, bool ours)
{
    const struct api_vmi *vmi = v->vmi ? &v->vmi->u.vmi : NULL;

    if (!vmi || v->settings->limits.bandwidth_per_node == 0) {
        return 0;
    }
    if (ours) {
        return vmi->migration.config.bandwidth_bytes_per_s;
    }
    ferry_cleanup_free char *json = configuration(v);
    api_cleanup_doc yyjson_doc *doc = json ? yyjson_read(json, strlen(json), 0) : NULL;
    yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), "bandwidthPerMigration");
    int64_t bytes = 0;

    return value && api_quantity_val(value, 1, &bytes, NULL) == 0 ? bytes : 0;
}

struct limits_move migration_ledger_row(const struct migration_view *v, const char *key,
                                        int64_t now_ms)
{
    const struct api_migration *m = &v->migration->u.migration;
    const struct api_vmi *vmi = v->vmi ? &v->vmi->u.vmi : NULL;
    const struct api_pod *target = v->target_pod ? &v->target_pod->u.pod : NULL;
    bool ours = vmi && vmi->migration.present && ferry_streq(vmi->migration.uid, m->meta.uid);
    bool waits = wire_phase_is(m->phase, PHASE_PENDING) ||
                 (!m->phase[0] && plan_has_finalizer(&m->meta, FINALIZER_MIGRATION));

    return (struct limits_move){
        .uid = m->meta.uid,
        .key = key,
        .source_node = ours  ? vmi->migration.source_node
                       : vmi ? vmi->node_name
                             : NULL,
        .target_node = ours     ? vmi->migration.target_node
                       : target ? target->node_name
                                : NULL,
        .priority = migration_priority(m),
        .created_ms = m->meta.created_ms,
        .memory = vmi ? vmi->memory_bytes : 0,
        .bandwidth = bandwidth(v, ours),
        .active = (target && !wire_pod_is_over(target)) || migration_is_running(m) ||
                  (ours && !vmi->migration.completed),
        .handed_off = ours && !vmi->migration.completed,
        /* One that would be refused does not keep others out. */
        .ready = waits && migration_is_startable(v, NULL) &&
                 !storage_check(vmi, &v->storage).reason && migration_backoff_until(v) <= now_ms &&
                 !m->meta.deleted_ms && !migration_is_refused(m) && vmi && has_policy(v),
    };
}
