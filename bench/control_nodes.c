/* control_nodes KUBECONFIG NODES VMS MOVES THREADS: the load of bench/control.py. Fills the
 * API with NODES nodes and VMS running VMs with their pods, says "ready" and waits for a line on
 * standard input; then plays all nodes, without any time of their own, and creates MOVES migrations
 * as fast as it can. All the time the nodes give their signs of life, as handlers do. Prints, as
 * they come: "created SECONDS", "handed SECONDS", "final SECONDS" when the last migration got so
 * far, counted from the first creation; then "writes N" of its own after the line. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/workers.h"

#define NS "default"
#define HEARTBEAT "kubevirt.io/heartbeat"
#define LABEL_JOB "kubevirt.io/migrationJobUID"

enum { WAIT_S = 900, THREADS_MAX = 64, HEARTBEAT_MS = 10000 };

static struct kube_client *client;
static struct kube_queue *queue; /* "p/NAME" and "v/NAME" */
static struct kube_informer *pods, *vmis, *moves;
static int n_nodes, n_vms, n_moves, n_threads;
static atomic_long next_job, writes, handed, finished, failed;
static atomic_llong begin_ns;

static double since_begin(void)
{
    return (double)(ferry_now_ns() - atomic_load(&begin_ns)) / 1e9;
}

static void say(const char *what)
{
    printf("%s %.3f\n", what, since_begin());
    fflush(stdout);
}

static _Noreturn void die(const struct ferry_error *err)
{
    fprintf(stderr, "control_nodes: %s\n", err->msg);
    exit(1);
}

static void create(const char *group, const char *plural, const char *ns, const char *json)
{
    struct ferry_error err = {0};
    struct kube_ref ref = {.resource = api_resource_find(group, "v1", plural), .ns = ns};

    if (kube_client_create(client, ref, json, NULL, &err) < 0) {
        die(&err);
    }
    atomic_fetch_add(&writes, 1);
}

/* ---- filling --------------------------------------------------------------------------------- */

static void make_node(long i)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"metadata\":{\"name\":\"n%ld\",\"labels\":{\"kubernetes.io/hostname\":\"n%ld\","
        "\"kubevirt.io/schedulable\":\"true\"}}}",
        i, i);
    ferry_cleanup_free char *name = ferry_asprintf("n%ld", i);
    struct kube_ref ref = kube_ref(API_KIND_NODE, NULL, name);
    struct ferry_error err = {0};

    create("", "nodes", NULL, json);
    ref.subresource = "status";
    if (kube_client_patch(client, ref, KUBE_PATCH_MERGE,
                          "{\"status\":{\"allocatable\":{\"cpu\":\"64\",\"memory\":\"256Gi\","
                          "\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
                          "\"True\"}]}}",
                          NULL, &err) < 0) {
        die(&err);
    }
}

/* One thread for all nodes, each every ten seconds. */
static void *beat(void *arg)
{
    (void)arg;
    for (long i = 0;; i = (i + 1) % n_nodes) {
        int64_t next_ns = ferry_now_ns() + HEARTBEAT_MS * FERRY_NS_PER_MS / n_nodes;
        char when[FERRY_RFC3339_SIZE];
        ferry_cleanup_free char *name = ferry_asprintf("n%ld", i);
        ferry_cleanup_free char *body =
            ferry_asprintf("{\"metadata\":{\"annotations\":{\"" HEARTBEAT "\":\"%s\"}}}",
                           ferry_rfc3339(ferry_now_unix_ms(), when));
        struct ferry_error err = {0};

        if (kube_client_patch(client, kube_ref(API_KIND_NODE, NULL, name), KUBE_PATCH_MERGE, body,
                              NULL, &err) < 0) {
            fprintf(stderr, "control_nodes: %s\n", err.msg);
        }
        while (ferry_now_ns() < next_ns) {
            ferry_sleep_ms(1);
        }
    }
    return NULL;
}

/* A VM that runs already: what controller and handlers would have written. */
static void make_vm(long i)
{
    ferry_cleanup_free char *name = ferry_asprintf("vm%ld", i);
    ferry_cleanup_free char *node = ferry_asprintf("n%ld", i % n_nodes);
    ferry_cleanup_free char *vmi = ferry_asprintf(
        "{\"apiVersion\":\"kubevirt.io/"
        "v1\",\"kind\":\"VirtualMachineInstance\",\"metadata\":{\"name\":"
        "\"%s\",\"labels\":{\"kubevirt.io/"
        "nodeName\":\"%s\"},\"finalizers\":"
        "[\"foregroundDeleteVirtualMachine\"]},\"spec\":{\"evictionStrategy\":\"LiveMigrate\","
        "\"domain\":{\"cpu\":{\"cores\":2},\"memory\":{\"guest\":\"256Mi\"},\"devices\":{\"disks\":"
        "[{"
        "\"name\":\"root\",\"disk\":{\"bus\":\"virtio\"}}]}},\"volumes\":[{\"name\":\"root\","
        "\"emptyDisk\":{\"capacity\":\"1Gi\"}}]},\"status\":{\"phase\":\"Running\",\"nodeName\":"
        "\"%s\",\"migrationMethod\":\"LiveMigration\",\"migrationTransport\":\"Unix\","
        "\"conditions\":[{\"type\":\"LiveMigratable\",\"status\":\"True\"}]}}",
        name, node, node);
    struct kube_ref ref = {.resource = api_resource_of_kind(API_KIND_VMI), .ns = NS};
    api_cleanup_object struct api_object *o = NULL;
    struct ferry_error err = {0};

    if (kube_client_create(client, ref, vmi, &o, &err) < 0) {
        die(&err);
    }
    ferry_cleanup_free char *pod = ferry_asprintf(
        "{\"metadata\":{\"name\":\"virt-launcher-%s-first\",\"labels\":{\"kubevirt.io\":"
        "\"virt-launcher\",\"kubevirt.io/created-by\":\"%s\",\"vm.kubevirt.io/name\":\"%s\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
        "\"VirtualMachineInstance\",\"name\":\"%s\",\"uid\":\"%s\",\"controller\":true}]},\"spec\":"
        "{"
        "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"compute\",\"image\":\"x\",\"resources\":{"
        "\"requests\":{\"cpu\":\"200m\",\"memory\":\"400Mi\"}}}]}}",
        name, o->meta->uid, name, name, o->meta->uid, node);
    create("", "pods", NS, pod);
    ferry_cleanup_free char *pod_name = ferry_asprintf("virt-launcher-%s-first", name);
    ref = kube_ref(API_KIND_POD, NS, pod_name);
    ref.subresource = "status";
    if (kube_client_patch(client, ref, KUBE_PATCH_MERGE,
                          "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":"
                          "\"compute\",\"ready\":true,\"state\":{\"running\":{}}}]}}",
                          NULL, &err) < 0) {
        die(&err);
    }
}

static void make_move(long i)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstanceMigration\","
        "\"metadata\":{\"name\":\"m%ld\"},\"spec\":{\"vmiName\":\"vm%ld\"}}",
        i, i % n_vms);

    create("kubevirt.io", "virtualmachineinstancemigrations", NS, json);
}

struct jobs {
    void (*one)(long i);
    long n;
};

static void *work(void *arg)
{
    const struct jobs *jobs = arg;

    for (long i; (i = atomic_fetch_add(&next_job, 1)) < jobs->n;) {
        jobs->one(i);
    }
    return NULL;
}

static void in_parallel(void (*one)(long i), long n)
{
    struct jobs jobs = {one, n};
    pthread_t threads[THREADS_MAX];

    atomic_store(&next_job, 0);
    for (int i = 0; i < n_threads; i++) {
        if (pthread_create(&threads[i], NULL, work, &jobs) != 0) {
            exit(1);
        }
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int act_on_pod(const char *name, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = kube_informer_get(pods, NS, name);
    struct kube_ref ref = kube_ref(API_KIND_POD, NS, name);

    if (!o || ferry_str_empty(o->u.pod.node_name)) {
        return 0;
    }
    if (o->meta->deleted_ms) {
        atomic_fetch_add(&writes, 1);
        return kube_client_delete(client, ref, &(struct kube_delete_options){.has_grace = true},
                                  err);
    }
    if (!ferry_str_empty(o->u.pod.phase) && strcmp(o->u.pod.phase, "Pending") != 0) {
        return 0;
    }
    ref.subresource = "status";
    atomic_fetch_add(&writes, 1);
    return kube_client_patch(client, ref, KUBE_PATCH_MERGE,
                             "{\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":"
                             "\"compute\",\"ready\":true,\"state\":{\"running\":{}}}]}}",
                             NULL, err);
}

/* Both handlers in one: prepared, begun, arrived and completed at once. */
static int act_on_vmi(const char *name, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = kube_informer_get(vmis, NS, name);
    const struct api_migration_state *s = o ? &o->u.vmi.migration : NULL;
    char when[FERRY_RFC3339_SIZE];

    if (!s || !s->present || s->completed || ferry_str_empty(s->target_node)) {
        return 0;
    }
    ferry_rfc3339(ferry_now_unix_ms(), when);
    ferry_cleanup_free char *body = ferry_asprintf(
        "{\"metadata\":{\"labels\":{\"kubevirt.io/nodeName\":\"%s\","
        "\"kubevirt.io/migrationTargetNodeName\":null}},\"status\":{\"nodeName\":\"%s\","
        "\"migrationState\":{\"targetNodeAddress\":\"127.0.0.1\",\"startTimestamp\":\"%s\","
        "\"mode\":\"PreCopy\",\"endTimestamp\":\"%s\",\"completed\":true}}}",
        s->target_node, s->target_node, when, when);
    atomic_fetch_add(&writes, 1);
    return kube_client_patch(client, kube_ref(API_KIND_VMI, NS, name), KUBE_PATCH_MERGE, body, NULL,
                             err);
}

static int act(void *ctx, const char *key, struct kube_again *again, struct ferry_error *err)
{
    (void)ctx;
    (void)again;
    int rc = key[0] == 'p' ? act_on_pod(key + 2, err) : act_on_vmi(key + 2, err);

    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

static void wake(char kind, const struct api_object *o)
{
    ferry_cleanup_free char *key = ferry_asprintf("%c/%s", kind, o->meta->name);

    kube_queue_add(queue, key, 0);
}

static void on_pod(void *ctx, struct api_object *old, struct api_object *now)
{
    (void)ctx;
    (void)old;
    if (now) {
        wake('p', now);
    }
}

static void on_vmi(void *ctx, struct api_object *old, struct api_object *now)
{
    (void)ctx;
    const char *was = old ? old->u.vmi.migration.uid : NULL;

    if (!now || !now->u.vmi.migration.present) {
        return;
    }
    if (!ferry_streq(was, now->u.vmi.migration.uid) &&
        atomic_fetch_add(&handed, 1) + 1 == n_moves) {
        say("handed");
    }
    if (!now->u.vmi.migration.completed) {
        wake('v', now);
    }
}

static bool is_over(const struct api_object *m)
{
    return m && (strcmp(m->u.migration.phase, "Succeeded") == 0 ||
                 strcmp(m->u.migration.phase, "Failed") == 0);
}

/* Over, and nothing left to do about it. */
static bool is_final(const struct api_object *m)
{
    return is_over(m) && m->meta->finalizers.n == 0;
}

static void on_move(void *ctx, struct api_object *old, struct api_object *now)
{
    (void)ctx;
    if (!is_over(old) && is_over(now) && strcmp(now->u.migration.phase, "Failed") == 0) {
        atomic_fetch_add(&failed, 1);
    }
    if (!is_final(old) && is_final(now) && atomic_fetch_add(&finished, 1) + 1 == n_moves) {
        say("final");
    }
}

static void begin(enum api_kind kind,
                  void (*on_delta)(void *ctx, struct api_object *old, struct api_object *now),
                  struct kube_informer **ret)
{
    struct ferry_error err = {0};

    if (kube_informer_start(
            &(struct kube_informer_config){.client = client, .kind = kind, .on_delta = on_delta},
            ret, &err) < 0 ||
        kube_informer_wait_synced(*ret, ferry_now_ns() + 60 * FERRY_NS_PER_S, &err) < 0) {
        die(&err);
    }
}

int main(int argc, char **argv)
{
    struct kube_workers *workers = NULL;
    struct ferry_error err = {0};
    pthread_t heart;
    char line[8];

    if (argc != 6 || atoi(argv[2]) < 2 || atoi(argv[3]) < 1 || atoi(argv[5]) < 1 ||
        atoi(argv[5]) > THREADS_MAX) {
        fprintf(stderr, "usage: control_nodes KUBECONFIG NODES VMS MOVES THREADS\n");
        return 2;
    }
    n_nodes = atoi(argv[2]);
    n_vms = atoi(argv[3]);
    n_moves = atoi(argv[4]);
    n_threads = atoi(argv[5]);
    if (kube_client_open(argv[1], &client, &err) < 0) {
        die(&err);
    }
    in_parallel(make_node, n_nodes);
    if (pthread_create(&heart, NULL, beat, NULL) != 0) {
        return 1;
    }
    in_parallel(make_vm, n_vms);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin)) {
        return 1;
    }
    queue = kube_queue_new(NULL);
    begin(API_KIND_MIGRATION, on_move, &moves);
    begin(API_KIND_POD, on_pod, &pods);
    begin(API_KIND_VMI, on_vmi, &vmis);
    if (kube_workers_start(
            &(struct kube_workers_config){
                .name = "nodes", .queue = queue, .threads = (unsigned)n_threads, .reconcile = act},
            &workers, &err) < 0) {
        die(&err);
    }
    atomic_store(&writes, 0);
    atomic_store(&begin_ns, ferry_now_ns());
    in_parallel(make_move, n_moves);
    say("created");
    while (atomic_load(&finished) < n_moves && since_begin() < WAIT_S) {
        ferry_sleep_ms(20);
    }
    printf("writes %ld\nfailed %ld\nfinished %ld\nhanded-count %ld\n", atomic_load(&writes),
           atomic_load(&failed), atomic_load(&finished), atomic_load(&handed));
    fflush(stdout);
    return atomic_load(&finished) < n_moves; /* the process ends with all its threads */
}
