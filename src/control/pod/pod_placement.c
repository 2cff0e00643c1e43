/* Where a launcher pod may run. */
#include <string.h>

#include "api/machine_type.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"
#include "control/pod/pod_parts.h"

#define HOST_MODEL "host-model"

/* ---- the CPU that the guest has seen --------------------------------------------------------- */

static bool is_host_model(const struct api_machine *m)
{
    return ferry_str_empty(m->cpu_model) || ferry_streq(m->cpu_model, HOST_MODEL);
}

static bool has_prefixed(const struct api_map *map, const char *prefix)
{
    for (size_t i = 0; map && i < map->n; i++) {
        if (ferry_str_starts(map->items[i].key, prefix)) {
            return true;
        }
    }
    return false;
}

/* One that moved before keeps the CPU that it began with. */
static bool moved_before(const struct pod_request *r)
{
    return r->source_pod && (has_prefixed(&r->source_pod->node_selector, LABEL_CPU_MIGRATION) ||
                             has_prefixed(&r->source_pod->node_selector, LABEL_CPU_FEATURE));
}

bool pod_target_cpu_is_known(const struct pod_request *r, const char **ret_why)
{
    const struct api_map *labels = r->source_node ? &r->source_node->meta.labels : NULL;

    /* Not asked for by name: nodes that do not report models are all alike. */
    if (!ferry_streq(r->vmi->machine.cpu_model, HOST_MODEL) || moved_before(r) ||
        has_prefixed(labels, LABEL_HOST_MODEL)) {
        return true;
    }
    *ret_why = "the CPU model of the source node is not known";
    return false;
}

/* Labels of the node under another prefix, as selectors. */
static void select_like(struct pod_draft *d, yyjson_mut_val *selector, const struct api_map *labels,
                        const char *prefix, const char *as)
{
    for (size_t i = 0; i < labels->n; i++) {
        const struct api_pair *l = &labels->items[i];

        if (ferry_str_starts(l->key, prefix)) {
            ferry_cleanup_free char *key = ferry_asprintf("%s%s", as, l->key + strlen(prefix));

            pod_put_str(d, selector, key, l->value);
        }
    }
}

static void select_source_cpu(struct pod_draft *d, yyjson_mut_val *selector)
{
    const struct pod_request *r = d->r;
    const struct api_map *node = r->source_node ? &r->source_node->meta.labels : NULL;

    if (is_host_model(d->machine) && moved_before(r)) {
        const struct api_map *had = &r->source_pod->node_selector;

        select_like(d, selector, had, LABEL_CPU_MIGRATION, LABEL_CPU_MIGRATION);
        select_like(d, selector, had, LABEL_CPU_FEATURE, LABEL_CPU_FEATURE);
    } else if (is_host_model(d->machine) && node) {
        select_like(d, selector, node, LABEL_HOST_MODEL, LABEL_CPU_MIGRATION);
        select_like(d, selector, node, LABEL_HOST_FEATURES, LABEL_CPU_FEATURE);
    }
    if (node && !has_prefixed(&d->machine->node_selector, LABEL_CPU_VENDOR)) {
        for (size_t i = 0; i < node->n; i++) {
            if (ferry_str_starts(node->items[i].key, LABEL_CPU_VENDOR)) {
                pod_put_str(d, selector, node->items[i].key, "true");
            }
        }
    }
}

static void select_own_cpu(struct pod_draft *d, yyjson_mut_val *selector)
{
    const struct api_machine *m = d->machine;

    if (!is_host_model(m) && !ferry_streq(m->cpu_model, "host-passthrough")) {
        ferry_cleanup_free char *key = ferry_asprintf("%s%s", LABEL_CPU_MODEL, m->cpu_model);

        pod_put_str(d, selector, key, "true");
    }
    for (size_t i = 0; i < m->n_cpu_features; i++) {
        const struct api_cpu_feature *f = &m->cpu_features[i];

        if (ferry_str_empty(f->policy) || ferry_streq(f->policy, "require")) {
            ferry_cleanup_free char *key = ferry_asprintf("%s%s", LABEL_CPU_FEATURE, f->name);

            pod_put_str(d, selector, key, "true");
        }
    }
    if (m->dedicated_cpus) {
        pod_put_str(d, selector, LABEL_CPU_MANAGER, "true");
    }
    if (m->realtime) {
        pod_put_str(d, selector, LABEL_REALTIME, "true");
    }
    if (m->sev) {
        pod_put_str(d, selector, LABEL_SEV, "true");
    }
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* A guest that runs, on a node that does not report machine types, may as well go to another that
 * does not: nothing is known of either. */
static void select_machine(struct pod_draft *d, yyjson_mut_val *selector)
{
    const struct pod_request *r = d->r;
    const char *type = r->machine_type ? r->machine_type : d->vmi->machine_type;
    ferry_cleanup_free char *key = ferry_asprintf("%s%s", LABEL_MACHINE_TYPE, type ? type : "");

    if (api_machine_is_pinned(type) &&
        (!r->migration ||
         (r->source_node && has_prefixed(&r->source_node->meta.labels, LABEL_MACHINE_TYPE)))) {
        pod_put_str(d, selector, key, "true");
    }
}

/* ---- selectors and affinity ------------------------------------------------------------------ */

static void render_node_selector(struct pod_draft *d, yyjson_mut_val *spec)
{
    const struct api_map *own = &d->machine->node_selector;
    yyjson_mut_val *selector = pod_put_obj(d, spec, "nodeSelector");

    if (d->r->migration) {
        const struct api_map *added = &d->r->migration->added_node_selector;

        for (size_t i = 0; i < added->n; i++) {
            pod_put_str(d, selector, added->items[i].key, added->items[i].value);
        }
    }
    /* What the VM itself needs wins: a migration can only narrow. */
    pod_put_str(d, selector, LABEL_SCHEDULABLE, "true");
    select_own_cpu(d, selector);
    select_machine(d, selector);
    if (d->r->migration) {
        select_source_cpu(d, selector);
    }
    for (size_t i = 0; i < own->n; i++) {
        pod_put_str(d, selector, own->items[i].key, own->items[i].value);
    }
}

static void keep_off_own_nodes(struct pod_draft *d, yyjson_mut_val *affinity)
{
    const char *required = "requiredDuringSchedulingIgnoredDuringExecution";
    yyjson_mut_val *anti = yyjson_mut_obj_get(affinity, "podAntiAffinity");

    if (!yyjson_mut_is_obj(anti)) {
        yyjson_mut_obj_remove_key(affinity, "podAntiAffinity");
        anti = pod_put_obj(d, affinity, "podAntiAffinity");
    }
    yyjson_mut_val *terms = yyjson_mut_obj_get(anti, required);
    if (!yyjson_mut_is_arr(terms)) {
        yyjson_mut_obj_remove_key(anti, required);
        terms = pod_put_arr(d, anti, required);
    }
    yyjson_mut_val *term = yyjson_mut_arr_add_obj(d->doc, terms);
    yyjson_mut_val *labels = pod_put_obj(d, pod_put_obj(d, term, "labelSelector"), "matchLabels");
    pod_put_str(d, labels, LABEL_CREATED_BY, d->vmi->meta.uid);
    pod_put_str(d, term, "topologyKey", LABEL_HOSTNAME);
}

/* The VMI's affinity, and for a target: no node that has a pod of this VMI. */
static void render_affinity(struct pod_draft *d, yyjson_mut_val *spec)
{
    yyjson_val *own = yyjson_obj_get((yyjson_val *)d->vmi->spec, "affinity");
    yyjson_mut_val *affinity =
        yyjson_is_obj(own) ? yyjson_val_mut_copy(d->doc, own) : yyjson_mut_obj(d->doc);

    if (d->r->migration) {
        keep_off_own_nodes(d, affinity);
    }
    if (yyjson_mut_obj_size(affinity) > 0) {
        yyjson_mut_obj_add_val(d->doc, spec, "affinity", affinity);
    }
}

void pod_render_placement(struct pod_draft *d, yyjson_mut_val *spec)
{
    static const char *const copied[] = {"tolerations", "topologySpreadConstraints",
                                         "schedulerName", "priorityClassName"};

    render_node_selector(d, spec);
    render_affinity(d, spec);
    for (size_t i = 0; i < FERRY_COUNT(copied); i++) {
        yyjson_val *own = yyjson_obj_get((yyjson_val *)d->vmi->spec, copied[i]);

        if (own && !yyjson_is_null(own)) {
            yyjson_mut_obj_add_val(d->doc, spec, copied[i], yyjson_val_mut_copy(d->doc, own));
        }
    }
}
