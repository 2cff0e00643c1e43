/* Theory of operation.
 *
 * Informers feed the queues; which change wakes what is a table of its own (watches.c). Workers
 * start only when all caches are filled: a half-filled view looks like loss. */
#include "control/loops/controller.h"

#include <string.h>

#include "api/json.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/clock_notes.h"
#include "control/loops/cluster_config.h"
#include "control/loops/guest_users.h"
#include "control/loops/watches.h"

enum { WORKERS = 3, SYNC_STEP_MS = 300, COMPLAIN_MS = 10000 };

static struct kube_informer **informer_of(struct controller *c, const struct watch *w)
{
    return (struct kube_informer **)(void *)((char *)&c->cluster + w->informer);
}

/* Made first, started after: what a delta wakes may look into every cache. */
static int start_informers(struct controller *c, struct ferry_error *err)
{
    for (size_t i = 0; i < watches_count; i++) {
        const struct watch *w = &watches_table[i];
        const struct api_resource *r = api_resource_find(w->group, w->version, w->plural);

        *informer_of(c, w) =
            kube_informer_new(&(struct kube_informer_config){.client = c->cluster.client,
                                                             .kind = r->kind,
                                                             .resource = r,
                                                             .on_delta = w->on_delta,
                                                             .index = w->index,
                                                             .ctx = c});
    }
    for (size_t i = 0; i < watches_count; i++) {
        int rc = kube_informer_begin(*informer_of(c, &watches_table[i]), err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int wait_for_caches(struct controller *c, bool (*stop)(void), struct ferry_error *err)
{
    int64_t complain_ns = ferry_now_ns() + COMPLAIN_MS * FERRY_NS_PER_MS;

    for (size_t i = 0; i < watches_count;) {
        int64_t step = ferry_now_ns() + SYNC_STEP_MS * FERRY_NS_PER_MS;
        struct ferry_error why = {0};

        if (watches_table[i].optional ||
            kube_informer_wait_synced(*informer_of(c, &watches_table[i]), step, &why) == 0) {
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
        enum controller_queue queue;
        const char *name;
        int (*reconcile)(void *ctx, const char *key, struct kube_again *again,
                         struct ferry_error *err);
        void *ctx;
        unsigned threads;
        bool wanted;
    } table[] = {
        {QUEUE_VM, "vm", loop_vm_reconcile, &c->cluster, workers, true},
        {QUEUE_VMI, "vmi", loop_vmi_reconcile, &c->cluster, workers, true},
        {QUEUE_MIGRATION, "migration", loop_migration_reconcile, c->migrations, workers, true},
        {QUEUE_POD, "schedule", loop_schedule_reconcile, c->schedule, 1, c->embedded},
        {QUEUE_BINDING, "bind", loop_schedule_bind, c->schedule, workers, c->embedded},
        {QUEUE_NODE, "node", loop_node_reconcile, c->nodes, 1, c->embedded},
        {QUEUE_EVACUATION, "evacuation", loop_evacuation_reconcile, &c->cluster, 1, true},
        {QUEUE_UPDATE, "update", loop_update_reconcile, c->updates, 1, true},
        {QUEUE_CLOCK, "clock", clock_notes_reconcile, &c->cluster, 1, true},
    };

    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (!table[i].wanted) {
            continue;
        }
        int rc =
            kube_workers_start(&(struct kube_workers_config){.name = table[i].name,
                                                             .queue = c->queues[table[i].queue],
                                                             .threads = table[i].threads,
                                                             .reconcile = table[i].reconcile,
                                                             .ctx = table[i].ctx},
                               &c->workers[table[i].queue], err);
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
    c->cluster.writer =
        (struct plan_writer){.client = cfg->client, .pending = pending_writes_new()};
    c->cluster.settings = cfg->settings;
    c->cluster.lease_ns = cfg->lease_ns;
    c->cluster.lease_name = cfg->lease_name;
    c->embedded = c->cluster.embedded = cfg->embedded;
    c->cluster.config = cluster_config_new();
    c->cluster.users = guest_users_new();
    pthread_mutex_init(&c->cluster.clock_lock, NULL);
    for (int i = 0; i < QUEUE_COUNT; i++) {
        c->queues[i] = kube_queue_new(NULL);
    }
    c->cluster.clock_changes = c->queues[QUEUE_CLOCK];
    clock_notes_recall(&c->cluster);
    c->migrations = loop_migration_new(&c->cluster);
    c->schedule = loop_schedule_new(&c->cluster, c->queues[QUEUE_POD], c->queues[QUEUE_BINDING]);
    c->nodes = loop_node_new(&c->cluster);
    c->updates = loop_update_new(&c->cluster);
    c->metrics = control_metrics_new();
    int rc = kube_recorder_start(cfg->client, "ferry-controller", cfg->host,
                                 &c->cluster.writer.recorder, err);
    if (rc == 0) {
        rc = start_informers(c, err);
    }
    if (rc == 0) {
        rc = wait_for_caches(c, cfg->stop, err);
    }
    if (rc == 0) {
        c->works = true;
        rc = start_workers(c, cfg->workers ? cfg->workers : WORKERS, err);
    }
    if (rc < 0) {
        controller_stop(c);
        return rc;
    }
    *ret = c;
    return 0;
}

static void each_informer(struct controller *c, void (*what)(struct kube_informer *inf))
{
    for (size_t i = 0; i < watches_count; i++) {
        if (*informer_of(c, &watches_table[i])) {
            what(*informer_of(c, &watches_table[i]));
        }
    }
}

void controller_stop(struct controller *c)
{
    if (!c) {
        return;
    }
    each_informer(c, kube_informer_cancel);
    for (int i = 0; i < QUEUE_COUNT; i++) {
        kube_workers_stop(c->workers[i]);
    }
    /* All threads first: a delta of one may look into the cache of another. */
    each_informer(c, kube_informer_join);
    each_informer(c, kube_informer_stop);
    kube_recorder_stop(c->cluster.writer.recorder);
    loop_migration_free(c->migrations);
    loop_schedule_free(c->schedule);
    loop_node_free(c->nodes);
    loop_update_free(c->updates);
    control_metrics_free(c->metrics);
    for (int i = 0; i < QUEUE_COUNT; i++) {
        kube_queue_free(c->queues[i]);
    }
    cluster_config_free(c->cluster.config);
    guest_users_free(c->cluster.users);
    pending_writes_free(c->cluster.writer.pending);
    pthread_mutex_destroy(&c->cluster.clock_lock);
    free(c);
}

void controller_metrics(struct controller *c, struct ferry_buf *out)
{
    static const struct {
        enum controller_queue queue;
        const char *name; /* KubeVirt's, where it has such a queue */
    } names[] = {
        {QUEUE_VM, "virt-controller-vm"},
        {QUEUE_VMI, "virt-controller-vmi"},
        {QUEUE_MIGRATION, "virt-controller-migration"},
        {QUEUE_EVACUATION, "virt-controller-evacuation"},
        {QUEUE_UPDATE, "virt-controller-workload-update"},
        {QUEUE_POD, "ferry-schedule"},
        {QUEUE_BINDING, "ferry-bind"},
        {QUEUE_NODE, "ferry-node"},
    };
    enum { N = FERRY_COUNT(names) };
    struct queue_metrics queues[N];
    struct migration_settings settings;
    api_cleanup_object struct api_object *kubevirt = cluster_config_get(&c->cluster, &settings);
    kube_cleanup_snapshot struct kube_snapshot migrations =
        kube_informer_list(c->cluster.migrations);
    kube_cleanup_snapshot struct kube_snapshot vmis = kube_informer_list(c->cluster.vmis);
    kube_cleanup_snapshot struct kube_snapshot vms = kube_informer_list(c->cluster.vms);

    for (size_t i = 0; i < N; i++) {
        queues[i].name = names[i].name;
        kube_queue_figures(c->queues[names[i].queue], &queues[i].figures);
    }
    control_metrics_write(
        c->metrics,
        &(struct control_metrics_view){
            .migrations = (const struct api_object *const *)migrations.items,
            .n_migrations = migrations.n,
            .vmis = (const struct api_object *const *)vmis.items,
            .n_vmis = vmis.n,
            .vms = (const struct api_object *const *)vms.items,
            .n_vms = vms.n,
            .cluster_strategy =
                kubevirt ? api_json_str(kubevirt->root, "/spec/configuration/evictionStrategy")
                         : NULL,
            .outdated = loop_update_outdated(c->updates),
            .queues = queues,
            .n_queues = N},
        out);
}
