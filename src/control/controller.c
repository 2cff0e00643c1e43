/* Theory of operation.
 *
 * Informers feed four queues. Which change of what wakes whom:
 *
 *   VM         itself
 *   VMI        the VMI; its VM; every migration of it; its node, when it has to leave it
 *   Pod        its VMI (owner); the migration that it is the target of; the scheduler when it has
 *              no node, and all pods without a node when one ends
 *   migration  itself; its VMI; when it ends, the migrations that wait for a place
 *   Node       itself; all pods without a node; the moves of one that was removed; the
 *              evacuation of one with taints
 *   KubeVirt, MigrationPolicy, Namespace
 *              the migrations that wait: limits and policies may have changed
 *   PersistentVolumeClaim
 *              the VMIs that name it, as if they had changed; all pods without a node
 *   StorageClass, StorageProfile
 *              the migrations that wait; all pods without a node
 *   ResourceQuota
 *              the migrations of the namespace that quota refused
 *
 * Workers start only when all caches are filled: a half-filled view looks like loss. */
#include "control/controller.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/cluster_config.h"
#include "control/facts.h"
#include "control/loops.h"
#include "control/names.h"

enum { NEXT_MAX = 64, WORKERS = 3, SYNC_STEP_MS = 300, COMPLAIN_MS = 10000 };

struct controller {
    struct cluster cluster;
    bool embedded;
    struct kube_queue *vm_queue, *vmi_queue, *migration_queue, *pod_queue, *node_queue,
        *evacuation_queue;
    struct kube_workers *vm_workers, *vmi_workers, *migration_workers, *pod_workers, *node_workers,
        *evacuation_workers;
    struct loop_migration *migrations;
    struct loop_schedule *schedule;
    struct loop_node *nodes;
};
#define INFORMERS(c)                                                                               \
    (c)->cluster.vms, (c)->cluster.migrations, (c)->cluster.pods, (c)->cluster.vmis,               \
        (c)->cluster.nodes, (c)->cluster.kubevirts, (c)->cluster.policies,                         \
        (c)->cluster.namespaces, (c)->cluster.quotas, (c)->cluster.claims, (c)->cluster.classes,   \
        (c)->cluster.profiles

/* ---- what wakes whom -------------------------------------------------------------------------
 */

static void wake(struct kube_queue *q, const char *ns, const char *name, int priority)
{
    if (!ferry_str_empty(name)) {
        ferry_cleanup_free char *key = cluster_key(ns, name);

        kube_queue_add(q, key, priority);
    }
}

static void wake_migration(struct controller *c, const struct api_object *m)
{
    wake(c->migration_queue, m->meta->namespace_, m->meta->name,
         loop_migration_priority(&m->u.migration));
}

/* The node of a VMI that may have to leave it, or that has left another. */
static void wake_evacuation(struct controller *c, const struct api_object *vmi)
{
    const char *node = vmi ? vmi->u.vmi.node_name : NULL;

    if (!ferry_str_empty(node)) {
        api_cleanup_object struct api_object *o = kube_informer_get(c->cluster.nodes, NULL, node);
        bool tainted = o && yyjson_ptr_get((yyjson_val *)o->root, "/spec/taints");

        if (tainted || api_json_str(vmi->root, "/status/evacuationNodeName")) {
            kube_queue_add(c->evacuation_queue, node, 0);
        }
    }
}

static void on_vm(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *vm = (now ? now : old)->meta;

    wake(c->vm_queue, vm->namespace_, vm->name, 0);
}

static void on_vmi(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *vmi = (now ? now : old)->meta;
    ferry_cleanup_free char *key = cluster_key(vmi->namespace_, vmi->name);
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_find(c->cluster.migrations, key);

    wake(c->vmi_queue, vmi->namespace_, vmi->name, 0);
    wake(c->vm_queue, vmi->namespace_, vmi->name, 0); /* nothing when there is no VM */
    wake_evacuation(c, now);
    loop_migration_changed(c->migrations, vmi->namespace_, vmi->name);
    for (size_t i = 0; i < all.n; i++) {
        wake_migration(c, all.items[i]);
    }
}

static void wake_homeless_pods(struct controller *c)
{
    kube_cleanup_snapshot struct kube_snapshot pods = kube_informer_list(c->cluster.pods);

    for (size_t i = 0; c->embedded && i < pods.n; i++) {
        if (ferry_str_empty(pods.items[i]->u.pod.node_name)) {
            wake(c->pod_queue, pods.items[i]->meta->namespace_, pods.items[i]->meta->name, 0);
        }
    }
}

static void on_pod(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *m = (now ? now : old)->meta;

    for (size_t i = 0; i < m->n_owners; i++) {
        if (ferry_streq(m->owners[i].kind, "VirtualMachineInstance")) {
            wake(c->vmi_queue, m->namespace_, m->owners[i].name, 0);
            loop_migration_changed(c->migrations, m->namespace_, m->owners[i].name);
        }
    }
    wake(c->migration_queue, m->namespace_,
         api_map_get(&m->annotations, ANNOTATION_MIGRATION_JOB_NAME), KUBE_PRIORITY_ACTIVE);
    if (!now || pod_is_down(&now->u.pod)) {
        wake_homeless_pods(c); /* there is room now */
    } else if (c->embedded && ferry_str_empty(now->u.pod.node_name)) {
        wake(c->pod_queue, m->namespace_, m->name, 0);
    }
}

/* All that wait: what was decided about them may be wrong now. */
static void wake_waiting_migrations(struct controller *c)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(c->cluster.migrations);

    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.items[i]->u.migration.phase, PHASE_PENDING) == 0) {
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
        kube_queue_add(c->migration_queue, key, KUBE_PRIORITY_USER);
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
    bool was_over = old && migration_is_final(&old->u.migration);
    bool is_over = !now || migration_is_final(&now->u.migration);

    assert(m);
    if (!now) {
        loop_migration_gone(c->migrations, m->meta->uid);
    }
    if (!ferry_str_empty(m->u.migration.vmi_name)) {
        loop_migration_changed(c->migrations, m->meta->namespace_, m->u.migration.vmi_name);
    }
    wake_migration(c, m);
    wake(c->vmi_queue, m->meta->namespace_, m->u.migration.vmi_name, 0);
    if (is_over && !was_over) {
        api_cleanup_object struct api_object *vmi = kube_informer_get(
            c->cluster.vmis, m->meta->namespace_, text_of(m->u.migration.vmi_name));

        wake_evacuation(c, vmi);
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

static void on_node(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    if (!now || (old && node_silent_since(&old->u.node) != node_silent_since(&now->u.node))) {
        wake_moves_of_node(c, (now ? now : old)->meta->name);
    }
    if (!now) {
        kube_queue_add(c->evacuation_queue, old->meta->name, 0);
    } else if (yyjson_ptr_get((yyjson_val *)now->root, "/spec/taints")) {
        kube_queue_add(c->evacuation_queue, now->meta->name, 0);
    }
    if (c->embedded) {
        loop_node_seen(c->nodes, old, now);
        kube_queue_add(c->node_queue, (now ? now : old)->meta->name, 0);
        wake_homeless_pods(c);
    }
}

static void on_settings(void *ctx, struct api_object *old, struct api_object *now)
{
    (void)old;
    (void)now;
    wake_waiting_migrations(ctx);
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

/* VMIs that name the claim, and their moves; pods that wait for it. */
static void on_claim(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;
    const struct api_meta *claim = (now ? now : old)->meta;
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
    wake_homeless_pods(c);
}

static void on_storage(void *ctx, struct api_object *old, struct api_object *now)
{
    on_settings(ctx, old, now);
    wake_homeless_pods(ctx);
}

static void on_kubevirt(void *ctx, struct api_object *old, struct api_object *now)
{
    struct controller *c = ctx;

    if (cluster_config_refresh(&c->cluster)) {
        on_settings(ctx, old, now);
    }
}

/* ---- start and stop --------------------------------------------------------------------------
 */

/* Made first, started after: what a delta wakes may look into every cache. */
static int start_informers(struct controller *c, struct ferry_error *err)
{
    const struct {
        const struct api_resource *resource;
        struct kube_informer **into;
        void (*on_delta)(void *ctx, struct api_object *old, struct api_object *now);
        char *(*index)(const struct api_object *o);
    } table[] = {
        {api_resource_of_kind(API_KIND_VM), &c->cluster.vms, on_vm, NULL},
        {api_resource_of_kind(API_KIND_MIGRATION), &c->cluster.migrations, on_migration,
         cluster_index_migration},
        {api_resource_of_kind(API_KIND_POD), &c->cluster.pods, on_pod, cluster_index_pod},
        {api_resource_of_kind(API_KIND_VMI), &c->cluster.vmis, on_vmi, cluster_index_vmi},
        {api_resource_of_kind(API_KIND_NODE), &c->cluster.nodes, on_node, NULL},
        {api_resource_find("kubevirt.io", "v1", "kubevirts"), &c->cluster.kubevirts, on_kubevirt,
         NULL},
        {api_resource_find("migrations.kubevirt.io", "v1alpha1", "migrationpolicies"),
         &c->cluster.policies, on_settings, NULL},
        {api_resource_find("", "v1", "resourcequotas"), &c->cluster.quotas, on_quota, NULL},
        {api_resource_find("", "v1", "namespaces"), &c->cluster.namespaces, on_settings, NULL},
        {api_resource_of_kind(API_KIND_CLAIM), &c->cluster.claims, on_claim, NULL},
        {api_resource_of_kind(API_KIND_STORAGE_CLASS), &c->cluster.classes, on_storage, NULL},
        {api_resource_of_kind(API_KIND_STORAGE_PROFILE), &c->cluster.profiles, on_storage, NULL},
    };
    const size_t n = sizeof(table) / sizeof(table[0]);

    for (size_t i = 0; i < n; i++) {
        *table[i].into =
            kube_informer_new(&(struct kube_informer_config){.client = c->cluster.client,
                                                             .kind = table[i].resource->kind,
                                                             .resource = table[i].resource,
                                                             .on_delta = table[i].on_delta,
                                                             .index = table[i].index,
                                                             .ctx = c});
    }
    for (size_t i = 0; i < n; i++) {
        int rc = kube_informer_begin(*table[i].into, err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int wait_for_caches(struct controller *c, bool (*stop)(void), struct ferry_error *err)
{
    struct kube_informer *const all[] = {INFORMERS(c)};
    int64_t complain_ns = ferry_now_ns() + COMPLAIN_MS * FERRY_NS_PER_MS;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]);) {
        int64_t step = ferry_now_ns() + SYNC_STEP_MS * FERRY_NS_PER_MS;
        struct ferry_error why = {0};

        if (kube_informer_wait_synced(all[i], step, &why) == 0) {
            i++;
        } else if (stop && stop()) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped while waiting for the API server");
        } else if (ferry_now_ns() > complain_ns) {
            ferry_warn("waiting for the API server", F_ERR(&why));
            complain_ns = ferry_now_ns() + COMPLAIN_MS * FERRY_NS_PER_MS;
        }
    }
    return 0;
}

static int start_workers(struct controller *c, unsigned workers, struct ferry_error *err)
{
    const struct {
        const char *name;
        struct kube_queue *queue;
        int (*reconcile)(void *ctx, const char *key, struct kube_again *again,
                         struct ferry_error *err);
        void *ctx;
        struct kube_workers **into;
        unsigned threads;
        bool wanted;
    } table[] = {
        {"vm", c->vm_queue, loop_vm_reconcile, &c->cluster, &c->vm_workers, workers, true},
        {"vmi", c->vmi_queue, loop_vmi_reconcile, &c->cluster, &c->vmi_workers, workers, true},
        {"migration", c->migration_queue, loop_migration_reconcile, c->migrations,
         &c->migration_workers, workers, true},
        {"schedule", c->pod_queue, loop_schedule_reconcile, c->schedule, &c->pod_workers, 1,
         c->embedded},
        {"node", c->node_queue, loop_node_reconcile, c->nodes, &c->node_workers, 1, c->embedded},
        {"evacuation", c->evacuation_queue, loop_evacuation_reconcile, &c->cluster,
         &c->evacuation_workers, 1, true},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int rc =
            !table[i].wanted
                ? 0
                : kube_workers_start(&(struct kube_workers_config){.name = table[i].name,
                                                                   .queue = table[i].queue,
                                                                   .threads = table[i].threads,
                                                                   .reconcile = table[i].reconcile,
                                                                   .ctx = table[i].ctx},
                                     table[i].into, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int controller_start(const struct controller_config *cfg, struct controller **ret,
                     struct ferry_error *err)
{
    struct controller *c = ferry_xcalloc(1, sizeof(*c));

    c->cluster.client = cfg->client;
    c->cluster.settings = cfg->settings;
    c->embedded = cfg->embedded;
    c->cluster.config = cluster_config_new();
    c->vm_queue = kube_queue_new(NULL);
    c->vmi_queue = kube_queue_new(NULL);
    c->migration_queue = kube_queue_new(NULL);
    c->pod_queue = kube_queue_new(NULL);
    c->node_queue = kube_queue_new(NULL);
    c->evacuation_queue = kube_queue_new(NULL);
    c->migrations = loop_migration_new(&c->cluster);
    c->schedule = loop_schedule_new(&c->cluster);
    c->nodes = loop_node_new(&c->cluster);
    int rc =
        kube_recorder_start(cfg->client, "ferry-controller", cfg->host, &c->cluster.recorder, err);
    if (rc == 0) {
        rc = start_informers(c, err);
    }
    if (rc == 0) {
        rc = wait_for_caches(c, cfg->stop, err);
    }
    if (rc == 0) {
        rc = start_workers(c, cfg->workers ? cfg->workers : WORKERS, err);
    }
    if (rc < 0) {
        controller_stop(c);
        return rc;
    }
    *ret = c;
    return 0;
}

void controller_stop(struct controller *c)
{
    if (!c) {
        return;
    }
    struct kube_informer *const informers[] = {INFORMERS(c)};
    const size_t n = sizeof(informers) / sizeof(informers[0]);

    for (size_t i = 0; i < n; i++) {
        if (informers[i]) {
            kube_informer_cancel(informers[i]);
        }
    }
    kube_workers_stop(c->vm_workers);
    kube_workers_stop(c->vmi_workers);
    kube_workers_stop(c->migration_workers);
    kube_workers_stop(c->pod_workers);
    kube_workers_stop(c->node_workers);
    kube_workers_stop(c->evacuation_workers);
    /* All threads first: a delta of one may look into the cache of another. */
    for (size_t i = 0; i < n; i++) {
        if (informers[i]) {
            kube_informer_join(informers[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        kube_informer_stop(informers[i]);
    }
    kube_recorder_stop(c->cluster.recorder);
    loop_migration_free(c->migrations);
    loop_schedule_free(c->schedule);
    loop_node_free(c->nodes);
    kube_queue_free(c->vm_queue);
    kube_queue_free(c->vmi_queue);
    kube_queue_free(c->migration_queue);
    kube_queue_free(c->pod_queue);
    kube_queue_free(c->node_queue);
    kube_queue_free(c->evacuation_queue);
    cluster_config_free(c->cluster.config);
    free(c);
}
