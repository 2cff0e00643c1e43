/* Which change of what wakes whom: a function per kind, and the table of them at the end. Deltas
 * run on the informers' threads, after the cache shows the change. */
#include "control/loops/watches.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/instancetype/matcher.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "control/loops/cluster_config.h"
#include "control/loops/guest_users.h"
#include "control/plan/facts.h"

/* From hand-over on, a move follows what the nodes write; several steps in a row are seen as one.
 */
enum { NEXT_MAX = 64, FOLLOW_MS = 50 };

static void wake(struct kube_queue *q, const char *ns, const char *name, int priority)
{
    if (!ferry_str_empty(name)) {
        ferry_cleanup_free char *key = cluster_key(ns, name);

        kube_queue_add(q, key, priority);
    }
}

static void wake_migration(struct controller *c, const struct api_object *m)
{
    wake(c->queues[QUEUE_MIGRATION], m->meta->namespace_, m->meta->name,
         loop_migration_priority(&m->u.migration));
}

static void follow_migration(struct controller *c, const struct api_object *m)
{
    ferry_cleanup_free char *key = cluster_key(m->meta->namespace_, m->meta->name);

    kube_queue_add_after(c->queues[QUEUE_MIGRATION], key, loop_migration_priority(&m->u.migration),
                         FOLLOW_MS * FERRY_NS_PER_MS);
}

/* The node of a VMI that may have to leave it, or that has left another. */
static void wake_evacuation(struct controller *c, const struct api_object *vmi)
{
    const char *node = vmi ? vmi->u.vmi.node_name : NULL;

    if (!ferry_str_empty(node)) {
        api_cleanup_object struct api_object *o = kube_informer_get(c->cluster.nodes, NULL, node);
        bool tainted = o && yyjson_ptr_get((yyjson_val *)o->root, "/spec/taints");

        if (tainted || api_json_str(vmi->root, "/status/evacuationNodeName")) {
            kube_queue_add(c->queues[QUEUE_EVACUATION], node, 0);
        }
    }
}

static void wake_updater(struct controller *c)
{
    kube_queue_add(c->queues[QUEUE_UPDATE], "all", 0);
}

static void on_vm(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *vm = (now ? now : old)->meta;

    wake(c->queues[QUEUE_VM], vm->namespace_, vm->name, 0);
}

static void on_vmi(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *vmi = (now ? now : old)->meta;
    ferry_cleanup_free char *key = cluster_key(vmi->namespace_, vmi->name);
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_find(c->cluster.migrations, key);

    guest_users_seen(c->cluster.users, old, now);
    wake(c->queues[QUEUE_VMI], vmi->namespace_, vmi->name, 0);
    wake(c->queues[QUEUE_VM], vmi->namespace_, vmi->name, 0); /* nothing when there is no VM */
    wake_updater(c);
    wake_evacuation(c, now);
    loop_migration_changed(c->migrations, vmi->namespace_, vmi->name);
    for (size_t i = 0; i < all.n; i++) {
        bool ours = now && ferry_streq(now->u.vmi.migration.uid, all.items[i]->meta->uid);

        if (ours) {
            follow_migration(c, all.items[i]);
        } else {
            wake_migration(c, all.items[i]);
        }
    }
}

static void on_pod(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *m = (now ? now : old)->meta;

    for (size_t i = 0; i < m->n_owners; i++) {
        if (ferry_streq(m->owners[i].kind, "VirtualMachineInstance")) {
            wake(c->queues[QUEUE_VMI], m->namespace_, m->owners[i].name, 0);
            loop_migration_changed(c->migrations, m->namespace_, m->owners[i].name);
        }
    }
    wake(c->queues[QUEUE_MIGRATION], m->namespace_,
         api_map_get(&m->annotations, ANNOTATION_MIGRATION_JOB_NAME), KUBE_PRIORITY_ACTIVE);
    if (!c->embedded) {
        return;
    }
    loop_schedule_pod_seen(c->schedule, old, now);
    if (!now || wire_pod_is_over(&now->u.pod)) {
        loop_schedule_wake(c->schedule);
    } else if (ferry_str_empty(now->u.pod.node_name)) {
        wake(c->queues[QUEUE_POD], m->namespace_, m->name, 0);
    }
}

/* All that wait: what was decided about them may be wrong now. */
static void wake_waiting_migrations(struct controller *c)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.migrations);

    for (size_t i = 0; i < all.n; i++) {
        if (wire_phase_is(all.items[i]->u.migration.phase, PHASE_PENDING)) {
            wake_migration(c, all.items[i]);
        }
    }
}

/* Those that may take the places that became free. */
static void wake_next_migrations(struct controller *c)
{
    for (size_t i = 0; i < NEXT_MAX; i++) {
        ferry_cleanup_free char *key = loop_migration_next(c->migrations, i);

        if (!key) {
            return;
        }
        kube_queue_add(c->queues[QUEUE_MIGRATION], key, KUBE_PRIORITY_USER);
    }
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static void on_migration(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_object *m = now ? now : old;
    bool was_over = old && wire_migration_is_over(&old->u.migration);
    bool is_over = !now || wire_migration_is_over(&now->u.migration);

    assert(m);
    control_metrics_seen(c->metrics, old, now);
    if (!now) {
        loop_migration_gone(c->migrations, m->meta->uid);
    }
    if (!ferry_str_empty(m->u.migration.vmi_name)) {
        loop_migration_changed(c->migrations, m->meta->namespace_, m->u.migration.vmi_name);
    }
    wake_migration(c, m);
    wake(c->queues[QUEUE_VMI], m->meta->namespace_, m->u.migration.vmi_name, 0);
    if (is_over && !was_over) {
        api_cleanup_object struct api_object *vmi = kube_informer_get(
            c->cluster.vmis, m->meta->namespace_, text_of(m->u.migration.vmi_name));

        wake_updater(c);
        wake_evacuation(c, vmi);
        wake(c->queues[QUEUE_VM], m->meta->namespace_, m->u.migration.vmi_name, 0);
        wake_next_migrations(c);
    }
}

/* Moves of a node that was taken away have to end; those of a silent one wait for it. */
static void wake_moves_of_node(struct controller *c, const char *node)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.vmis);

    for (size_t i = 0; i < all.n; i++) {
        const struct api_vmi *vmi = &all.items[i]->u.vmi;

        if ((vmi_is_migrating(vmi) || vmi_awaits_target(vmi)) &&
            (ferry_streq(vmi->migration.source_node, node) ||
             ferry_streq(vmi->migration.target_node, node))) {
            on_vmi(c, all.items[i], all.items[i]);
        }
    }
}

/* May a pod fit now that did not before? A sign of life alone changes nothing. */
static bool offers_more(const struct api_object *old, const struct api_object *now)
{
    static const char *const parts[] = {"/metadata/labels", "/spec", "/status/allocatable"};
    bool same = old && now && node_silent_since(&old->u.node) == node_silent_since(&now->u.node) &&
                api_condition_true(&old->u.node.conditions, CONDITION_READY) ==
                    api_condition_true(&now->u.node.conditions, CONDITION_READY);

    for (size_t i = 0; same && i < FERRY_COUNT(parts); i++) {
        yyjson_val *had = yyjson_ptr_get((yyjson_val *)old->root, parts[i]);
        yyjson_val *has = yyjson_ptr_get((yyjson_val *)now->root, parts[i]);

        same = had && has ? yyjson_equals(had, has) : had == has;
    }
    return !same;
}

static void on_node(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    if (!now || (old && node_silent_since(&old->u.node) != node_silent_since(&now->u.node))) {
        wake_moves_of_node(c, (now ? now : old)->meta->name);
    }
    if (!now) {
        kube_queue_add(c->queues[QUEUE_EVACUATION], old->meta->name, 0);
    } else if (yyjson_ptr_get((yyjson_val *)now->root, "/spec/taints")) {
        kube_queue_add(c->queues[QUEUE_EVACUATION], now->meta->name, 0);
    }
    if (c->embedded) {
        loop_node_seen(c->nodes, old, now);
        loop_schedule_node_seen(c->schedule, old, now);
        kube_queue_add(c->queues[QUEUE_NODE], (now ? now : old)->meta->name, 0);
        if (offers_more(old, now)) {
            loop_schedule_wake(c->schedule);
        }
    }
}

static void on_settings(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    (void)old;
    (void)now;

    if (c->works) {
        wake_waiting_migrations(c);
    }
}

/* Room that was made: those that quota refused may try again. */
static void on_quota(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.migrations);
    const char *ns = (now ? now : old)->meta->namespace_;

    for (size_t i = 0; i < all.n; i++) {
        if (ferry_streq(all.items[i]->meta->namespace_, ns) &&
            api_condition_true(&all.items[i]->u.migration.conditions, CONDITION_QUOTA)) {
            wake_migration(c, all.items[i]);
        }
    }
}

static void on_kubevirt(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    wake_updater(c);
    if (cluster_config_refresh(&c->cluster)) {
        on_settings(ctx, old, now);
    }
}

/* ---- storage and networks ---------------------------------------------------------------------
 */

/* VMIs that name the claim, and their moves; pods that wait for it. */
static void on_claim(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *claim = (now ? now : old)->meta;

    if (!c->works) {
        return; /* everything is looked at once anyway */
    }
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.vmis);
    for (size_t i = 0; i < all.n; i++) {
        const struct api_machine *m = &all.items[i]->u.vmi.machine;

        for (size_t k = 0; k < m->n_volumes; k++) {
            if (ferry_streq(storage_claim_name(&m->volumes[k]), claim->name) &&
                ferry_streq(all.items[i]->meta->namespace_, claim->namespace_)) {
                on_vmi(c, all.items[i], all.items[i]);
            }
        }
    }
    loop_schedule_wake(c->schedule);
}

static void on_volume(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    (void)old;
    (void)now;
    if (c->works) {
        loop_schedule_wake(c->schedule);
    }
}

static void on_storage(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    on_settings(c, old, now);
    if (c->works) {
        loop_schedule_wake(c->schedule);
    }
}

static bool is_attached(const struct api_vmi *vmi, const struct api_meta *nad)
{
    yyjson_val *networks = yyjson_obj_get((yyjson_val *)vmi->spec, "networks");
    yyjson_arr_iter it = yyjson_arr_iter_with(networks);

    for (yyjson_val *n; (n = yyjson_arr_iter_next(&it));) {
        const char *name = api_json_str(n, "/multus/networkName");
        const char *slash = name ? strchr(name, '/') : NULL;

        if (name && (slash ? strncmp(name, nad->namespace_, (size_t)(slash - name)) == 0 &&
                                 strlen(nad->namespace_) == (size_t)(slash - name) &&
                                 ferry_streq(slash + 1, nad->name)
                           : ferry_streq(name, nad->name) &&
                                 ferry_streq(vmi->meta.namespace_, nad->namespace_))) {
            return true;
        }
    }
    return false;
}

static void on_attachment(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *nad = (now ? now : old)->meta;

    if (!c->works) {
        return;
    }
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.vmis);
    for (size_t i = 0; i < all.n; i++) {
        if (is_attached(&all.items[i]->u.vmi, nad)) {
            wake(c->queues[QUEUE_VMI], all.items[i]->meta->namespace_, all.items[i]->meta->name, 0);
        }
    }
}

/* ---- instance types and preferences ------------------------------------------------------------
 */

/* VMs that wait for it. Those that have a copy keep that. */
static void on_sizing(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *named = (now ? now : old)->meta;
    bool namespaced = !ferry_str_empty(named->namespace_);

    if (!c->works || !now) {
        return;
    }
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.vms);
    for (size_t i = 0; i < all.n; i++) {
        const struct api_meta *vm = all.items[i]->meta;

        for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
            struct matcher m;

            if (matcher_read(all.items[i]->root, of, &m) && !m.recorded && m.resource &&
                m.resource->namespaced == namespaced && ferry_streq(m.name, named->name) &&
                (!namespaced || ferry_streq(vm->namespace_, named->namespace_))) {
                wake(c->queues[QUEUE_VM], vm->namespace_, vm->name, 0);
            }
        }
    }
}

/* ---- the table --------------------------------------------------------------------------------
 */

#define IN(field) offsetof(struct cluster, field)

#define SIZES "instancetype.kubevirt.io", "v1beta1"
#define WAITERS "the VMs that name it and have no copy yet"

const struct watch watches_table[] = {
    {"kubevirt.io", "v1", "virtualmachines", IN(vms), on_vm, NULL, false, "itself"},
    {"kubevirt.io", "v1", "virtualmachineinstances", IN(vmis), on_vmi, cluster_index_vmi, false,
     "the VMI; its VM; every migration of it; its node, when it has to leave it; the updater"},
    {"", "v1", "pods", IN(pods), on_pod, cluster_index_pod, false,
     "its VMI; the migration that it is the target of; itself while it has no node; pods that "
     "found "
     "no node, when it ends"},
    {"kubevirt.io", "v1", "virtualmachineinstancemigrations", IN(migrations), on_migration,
     cluster_index_migration, false,
     "itself; its VMI; when it ends, its VM, those that may take its place, the VMI's node, the "
     "updater"},
    {"", "v1", "nodes", IN(nodes), on_node, NULL, false,
     "itself; pods that found no node, when it offers more; its moves when it falls silent, is "
     "back "
     "or is removed; its evacuation when it has taints"},
    {"", "v1", "persistentvolumeclaims", IN(claims), on_claim, NULL, false,
     "the VMIs that name it, as if they had changed; pods that found no node"},
    {"", "v1", "persistentvolumes", IN(volumes), on_volume, NULL, false, "pods that found no node"},
    {"storage.k8s.io", "v1", "storageclasses", IN(classes), on_storage, NULL, false,
     "migrations that wait; pods that found no node"},
    {"cdi.kubevirt.io", "v1beta1", "storageprofiles", IN(profiles), on_storage, NULL, true,
     "migrations that wait; pods that found no node"},
    {"migrations.kubevirt.io", "v1alpha1", "migrationpolicies", IN(policies), on_settings, NULL,
     false, "migrations that wait"},
    {"", "v1", "resourcequotas", IN(quotas), on_quota, NULL, false,
     "migrations of its namespace that quota refused"},
    {"kubevirt.io", "v1", "kubevirts", IN(kubevirts), on_kubevirt, NULL, false,
     "migrations that wait; the updater"},
    {"k8s.cni.cncf.io", "v1", "network-attachment-definitions", IN(attachments), on_attachment,
     NULL, true, "VMIs with a network of that name"},
    {SIZES, "virtualmachineinstancetypes", IN(types), on_sizing, NULL, true, WAITERS},
    {SIZES, "virtualmachineclusterinstancetypes", IN(cluster_types), on_sizing, NULL, true,
     WAITERS},
    {SIZES, "virtualmachinepreferences", IN(preferences), on_sizing, NULL, true, WAITERS},
    {SIZES, "virtualmachineclusterpreferences", IN(cluster_preferences), on_sizing, NULL, true,
     WAITERS},
    {"", "v1", "namespaces", IN(namespaces), on_settings, NULL, false, "migrations that wait"},
};
const size_t watches_count = FERRY_COUNT(watches_table);
