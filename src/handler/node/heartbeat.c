#include "handler/node/heartbeat.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/node/migration_net.h"
#include "handler/node/node_report.h"

enum {
    BEAT_S = 10,
    RETRY_S = 2, /* while the API server is away */
    PODS_MAX = 110,
};

#ifndef FERRY_VERSION
#define FERRY_VERSION "unknown"
#endif

struct heartbeat {
    struct heartbeat_config cfg;
    struct node_facts facts;
    struct utsname kernel;
    char *os_image;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `stopping`, `hurry`, `port` and `cpu` */
    pthread_cond_t wake;
    bool stopping, hurry;
    int port;
    const struct node_cpu *cpu;
};

static char *os_image(void)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    (void)ferry_read_file("/etc/os-release", 65536, &b, NULL);
    return node_report_os_image(b.data ? b.data : "");
}

static int patch(struct heartbeat *h, struct kube_ref ref, struct api_patch *p,
                 struct ferry_error *err)
{
    ferry_cleanup_free char *body = api_patch_take(p);

    return kube_client_patch(h->cfg.client, ref, KUBE_PATCH_JSON, body, NULL, err);
}

/* The node's object, made when it is missing. */
static int get_or_create(struct heartbeat *h, struct api_object **ret, struct ferry_error *err)
{
    struct kube_ref ref = kube_ref(API_KIND_NODE, NULL, h->cfg.node);
    int rc = kube_client_get(h->cfg.client, ref, ret, err);

    if (rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    ferry_cleanup_free char *json = node_report_manifest(&h->facts);
    rc = kube_client_create(h->cfg.client, kube_ref(API_KIND_NODE, NULL, NULL), json, ret, err);
    if (rc == 0) {
        ferry_info("node registered", F_STR("node", h->cfg.node));
    }
    return rc;
}

static int beat_once(void *ctx, struct ferry_error *err)
{
    struct heartbeat *h = ctx;
    api_cleanup_object struct api_object *node = NULL, *fresh = NULL;
    int64_t now = ferry_now_unix_ms();
    char migration[ADDRESS_SIZE] = "";
    char network[MIGRATION_NET_TEXT], trouble[MIGRATION_NET_TEXT];

    /* Looked at each time: the interface may come, go or get another address. */
    if (migration_net_address(h->cfg.network, migration, NULL) < 0) {
        migration[0] = '\0';
    }
    migration_net_tell(h->cfg.network, network, trouble);
    h->facts.migration_address = migration;
    h->facts.migration_network = network;
    h->facts.migration_trouble = trouble;
    pthread_mutex_lock(&h->lock);
    h->facts.api_port = h->port;
    h->facts.cpu = h->cpu;
    pthread_mutex_unlock(&h->lock);
    int rc = get_or_create(h, &node, err);

    if (rc == 0) {
        rc = patch(h, kube_ref_of(node), node_report_metadata(node, &h->facts, now), err);
    }
    if (rc == 0) {
        rc = kube_client_get(h->cfg.client, kube_ref_of(node), &fresh, err);
    }
    struct api_patch *status = rc == 0 ? node_report_status(fresh, &h->facts, now) : NULL;
    return status ? patch(h, kube_ref_status(fresh), status, err) : rc;
}

static int beat(struct heartbeat *h, struct ferry_error *err)
{
    return kube_retry_conflicts(beat_once, h, err);
}

/* Sleeps; true when it is time to stop. */
static bool pause_or_stop(struct heartbeat *h, int64_t seconds)
{
    int64_t deadline_ns = ferry_now_ns() + seconds * FERRY_NS_PER_S;

    pthread_mutex_lock(&h->lock);
    while (!h->stopping && !h->hurry && ferry_cond_wait(&h->wake, &h->lock, deadline_ns)) {
    }
    h->hurry = false;
    bool stop = h->stopping;
    pthread_mutex_unlock(&h->lock);
    return stop;
}

static void *run(void *arg)
{
    struct heartbeat *h = arg;
    struct ferry_error err;
    bool fine = true;

    for (;;) {
        int rc = beat(h, &err);

        if (rc < 0 && fine) {
            ferry_warn("heartbeat failed, retrying", F_ERR(&err));
        } else if (rc == 0 && !fine) {
            ferry_info("heartbeat works again");
        }
        fine = rc == 0;
        if (pause_or_stop(h, fine ? BEAT_S : RETRY_S)) {
            return NULL;
        }
    }
}

static void heartbeat_free(struct heartbeat *h)
{
    pthread_cond_destroy(&h->wake);
    pthread_mutex_destroy(&h->lock);
    free(h->os_image);
    free(h);
}

int heartbeat_start(const struct heartbeat_config *cfg, struct heartbeat **ret,
                    struct ferry_error *err)
{
    struct heartbeat *h = ferry_xcalloc(1, sizeof(*h));
    struct sysinfo si;

    uname(&h->kernel);
    sysinfo(&si);
    h->cfg = *cfg;
    h->port = cfg->api_port;
    h->os_image = os_image();
    h->facts = (struct node_facts){.name = cfg->node,
                                   .kvm = cfg->kvm,
                                   .address = cfg->address,
                                   .cpus = get_nprocs(),
                                   .memory_bytes = (int64_t)si.totalram * si.mem_unit,
                                   .pods = PODS_MAX,
                                   .kernel = h->kernel.release,
                                   .os_image = h->os_image,
                                   .version = FERRY_VERSION};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    int rc = pthread_create(&h->thread, NULL, run, h);
    if (rc != 0) {
        heartbeat_free(h);
        return ferry_fail_errno(err, rc, "starting the heartbeat");
    }
    *ret = h;
    return 0;
}

void heartbeat_stop(struct heartbeat *h)
{
    if (!h) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    heartbeat_free(h);
}

void heartbeat_hurry(struct heartbeat *h)
{
    pthread_mutex_lock(&h->lock);
    h->hurry = true;
    pthread_cond_broadcast(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

void heartbeat_set_cpu(struct heartbeat *h, const struct node_cpu *cpu)
{
    pthread_mutex_lock(&h->lock);
    h->cpu = cpu;
    pthread_mutex_unlock(&h->lock);
}

void heartbeat_set_port(struct heartbeat *h, int api_port)
{
    pthread_mutex_lock(&h->lock);
    h->port = api_port;
    pthread_mutex_unlock(&h->lock);
}
