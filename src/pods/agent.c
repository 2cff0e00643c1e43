/* Theory of operation.
 *
 * The work queue is keyed by pod UID. A key comes in when the pod object changes, when a sandbox
 * ends (a watcher thread per running sandbox), when a deadline is due, and at start for every
 * directory found. One reconcile reads the object from the cache, probes the sandbox, asks
 * pod_decide() and does what it says; whatever fails is simply tried again, because all of it is
 * idempotent.
 *
 * Kept in memory per pod is only what may be forgotten: why the last start failed, and until when
 * the next one waits. An entry belongs to the worker that has its key; the list itself has the
 * lock. */
#include "pods/agent.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "kube/informer.h"
#include "kube/queue.h"
#include "kube/recorder.h"
#include "kube/workers.h"
#include "pods/cache.h"
#include "pods/log_trim.h"
#include "pods/pod_decide.h"
#include "pods/pod_dialect.h"
#include "pods/pod_dir.h"
#include "pods/pod_net.h"
#include "pods/pod_status.h"
#include "pods/pod_storage.h"
#include "pods/readiness.h"

enum {
    WORKERS = 4,
    RETRY_MIN_MS = 1000,
    RETRY_MAX_MS = 30000,
    /* How long a pod is not called running for the sake of libvirt's capability cache: until its
     * libvirtd runs, and until that has asked QEMU. */
    LIBVIRTD_MS = 1500,
    HARVEST_MS = 10000,
    HARVEST_AGAIN_MS = 100,
};

struct entry {
    struct entry *next;
    char *uid;
    char *ns, *name;   /* guarded by the lock; NULL when only a directory is known */
    char *start_error; /* the rest is the worker's */
    int64_t retry_ms, backoff_ms;
    bool told;    /* others may know that it runs */
    bool watched; /* a watcher thread runs; guarded by the lock */
};

struct agent {
    struct agent_config cfg;
    struct kube_informer *pods;
    struct kube_queue *queue;
    struct kube_workers *workers;
    struct kube_recorder *recorder;
    struct readiness *readiness;
    struct log_trim *log_trim;
    int stop_fd; /* readable when the agent stops */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t watcher_ended;
    unsigned n_watchers;
    struct entry *entries;
    char *host_ip;
};

/* ---- entries ----------------------------------------------------------------------------------
 */

static struct entry *entry_locked(struct agent *a, const char *uid)
{
    struct entry *e = a->entries;

    while (e && strcmp(e->uid, uid) != 0) {
        e = e->next;
    }
    if (!e) {
        e = ferry_xcalloc(1, sizeof(*e));
        e->uid = ferry_strdup(uid);
        e->next = a->entries;
        a->entries = e;
    }
    return e;
}

static void entry_free(struct entry *e)
{
    free(e->uid);
    free(e->ns);
    free(e->name);
    free(e->start_error);
    free(e);
}

static void entry_forget(struct agent *a, struct entry *e)
{
    pthread_mutex_lock(&a->lock);
    bool drop = !e->watched;
    for (struct entry **p = &a->entries; drop && *p; p = &(*p)->next) {
        if (*p == e) {
            *p = e->next;
            break;
        }
    }
    pthread_mutex_unlock(&a->lock);
    if (drop) {
        entry_free(e);
    }
}

/* Remembers which object a UID belongs to and has it looked at. */
static void enqueue(struct agent *a, const char *uid, const char *ns, const char *name)
{
    if (!sandbox_uid_valid(uid)) {
        ferry_error("pod with an unusable UID", F_STR("name", name ? name : ""));
        return;
    }
    pthread_mutex_lock(&a->lock);
    struct entry *e = entry_locked(a, uid);

    if (!e->name && name) {
        e->ns = ferry_strdup(ns ? ns : "");
        e->name = ferry_strdup(name);
    }
    pthread_mutex_unlock(&a->lock);
    kube_queue_add(a->queue, uid, KUBE_PRIORITY_USER);
}

static void on_delta(void *ctx, struct api_object *old, struct api_object *now)
{
    struct agent *a = ctx;

    if (old) {
        enqueue(a, old->meta->uid, old->meta->namespace_, old->meta->name);
    }
    if (now && !(old && ferry_streq(old->meta->uid, now->meta->uid))) {
        enqueue(a, now->meta->uid, now->meta->namespace_, now->meta->name);
    }
}

/* Every directory of an earlier life of this agent. */
static int adopt(struct agent *a, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf uids = {0};
    int rc = sandbox_list(&a->cfg.host, &uids, err);
    char *save = NULL;

    for (char *uid = uids.data ? strtok_r(uids.data, "\n", &save) : NULL; uid;
         uid = strtok_r(NULL, "\n", &save)) {
        ferry_cleanup_free char *key = sandbox_pod_key(&a->cfg.host, uid);
        char *slash = key ? strchr(key, '/') : NULL;

        if (slash) {
            *slash = '\0';
        }
        enqueue(a, uid, slash ? key : NULL, slash ? slash + 1 : NULL);
    }
    return rc;
}

/* ---- watchers ---------------------------------------------------------------------------------
 */

struct watcher {
    struct agent *agent;
    char *uid;
    pid_t bwrap; /* our child, or 0 for an adopted sandbox */
};

static void *watch(void *arg)
{
    struct watcher *w = arg;
    struct agent *a = w->agent;
    struct ferry_error err;
    int rc = sandbox_wait(&a->cfg.host, w->uid, a->stop_fd, &err);

    if (rc < 0 && rc != -FERRY_CANCELLED) {
        ferry_error("cannot watch a sandbox", F_STR("pod", w->uid), F_ERR(&err));
    }
    if (rc == 0 && w->bwrap) {
        waitpid(w->bwrap, NULL, 0);
    }
    pthread_mutex_lock(&a->lock);
    entry_locked(a, w->uid)->watched = false;
    pthread_mutex_unlock(&a->lock);
    if (rc != -FERRY_CANCELLED) {
        kube_queue_add(a->queue, w->uid, KUBE_PRIORITY_USER);
    }
    free(w->uid);
    free(w);
    pthread_mutex_lock(&a->lock);
    a->n_watchers--;
    pthread_cond_broadcast(&a->watcher_ended);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void watch_sandbox(struct agent *a, struct entry *e, pid_t bwrap)
{
    pthread_mutex_lock(&a->lock);
    bool already = e->watched;
    e->watched = true;
    a->n_watchers += already ? 0 : 1;
    pthread_mutex_unlock(&a->lock);
    if (already) {
        return;
    }
    struct watcher *w = ferry_xcalloc(1, sizeof(*w));
    pthread_attr_t attr;
    pthread_t thread;

    *w = (struct watcher){.agent = a, .uid = ferry_strdup(e->uid), .bwrap = bwrap};
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, watch, w);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        ferry_error("cannot start a thread, the end of a sandbox is noticed late",
                    F_STR("pod", e->uid), F_STR("error", strerror(rc)));
        pthread_mutex_lock(&a->lock);
        e->watched = false;
        a->n_watchers--;
        pthread_mutex_unlock(&a->lock);
        free(w->uid);
        free(w);
    }
}

/* ---- the world around one decision ------------------------------------------------------------
 */

/* The pod's object, or NULL when the API server has none of this UID. */
static int find_object(struct agent *a, struct entry *e, struct api_object **ret,
                       struct ferry_error *err)
{
    pthread_mutex_lock(&a->lock);
    ferry_cleanup_free char *ns = ferry_strdup(e->ns);
    ferry_cleanup_free char *name = ferry_strdup(e->name);
    pthread_mutex_unlock(&a->lock);
    if (!name) {
        return 0;
    }
    struct api_object *o = kube_informer_get(a->pods, ns, name);
    /* What is not in the cache may just be unreadable to us, or of a new UID: before a running
     * sandbox is ended, the server itself is asked. */
    if (!o) {
        int rc = kube_client_get(a->cfg.client, kube_ref(API_KIND_POD, ns, name), &o, err);

        if (rc < 0) {
            return rc == -FERRY_NOT_FOUND ? 0 : rc;
        }
    }
    if (!ferry_streq(o->meta->uid, e->uid) || !ferry_streq(o->u.pod.node_name, a->cfg.node)) {
        o = api_object_unref(o);
    }
    *ret = o;
    return 0;
}

/* This node's address, once its Node object has one. Owned by the agent. */
static const char *host_ip(struct agent *a)
{
    api_cleanup_object struct api_object *node = NULL;

    pthread_mutex_lock(&a->lock);
    const char *ip = a->host_ip;
    pthread_mutex_unlock(&a->lock);
    if (ip ||
        kube_client_get(a->cfg.client, kube_ref(API_KIND_NODE, NULL, a->cfg.node), &node, NULL) <
            0 ||
        !node->u.node.internal_ip) {
        return ip;
    }
    pthread_mutex_lock(&a->lock);
    if (!a->host_ip) {
        a->host_ip = ferry_strdup(node->u.node.internal_ip);
    }
    ip = a->host_ip;
    pthread_mutex_unlock(&a->lock);
    return ip;
}

static int write_report(struct agent *a, const struct api_object *o, const struct pod_report *r,
                        struct ferry_error *err)
{
    if (!r->phase) {
        return 0;
    }
    struct api_patch *patch = pod_status_patch(o, r, host_ip(a), ferry_now_unix_ms());

    if (!patch) {
        return 0;
    }
    ferry_cleanup_free char *body = api_patch_take(patch);
    int rc = kube_client_patch(a->cfg.client, kube_ref_status(o), KUBE_PATCH_JSON, body, NULL, err);
    if (rc == 0 && !wire_phase_is(o->u.pod.phase, r->phase)) {
        ferry_info("pod status", F_STR("pod", o->meta->name),
                   F_STR("phase", wire_phase_text(r->phase)),
                   F_STR("reason", r->reason ? r->reason : ""));
    }
    /* Gone in the meantime: the delta for that is on its way. */
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* ---- actions ----------------------------------------------------------------------------------
 */

static void start_failed(struct agent *a, struct entry *e, struct api_object *o, const char *reason,
                         const struct ferry_error *err)
{
    e->backoff_ms = e->backoff_ms ? e->backoff_ms * 2 : RETRY_MIN_MS;
    e->backoff_ms = e->backoff_ms < RETRY_MAX_MS ? e->backoff_ms : RETRY_MAX_MS;
    e->retry_ms = ferry_now_unix_ms() + e->backoff_ms;
    free(e->start_error);
    e->start_error = ferry_strdup(err->msg);
    ferry_error("cannot start a sandbox", F_STR("pod", o->meta->name), F_ERR(err));
    kube_record(a->recorder, o, KUBE_EVENT_WARNING, reason, "%s", err->msg);
}

static void start(struct agent *a, struct entry *e, struct api_object *o,
                  const struct pod_command *cmd)
{
    pod_storage_cleanup struct sandbox_disks disks = {0};
    struct cgroup_limits limits = cmd->limits;
    const struct sandbox_pod pod = {
        .uid = e->uid,
        .ns = o->meta->namespace_,
        .name = o->meta->name,
        .args = cmd->args,
        .n_args = cmd->n,
        .disks = &disks,
        .limits = &limits,
        .vhost_net = cmd->vhost_net,
        .kvm = cmd->kvm,
        .incoming = api_map_get(&o->meta->labels, LABEL_MIGRATION_JOB_UID) != NULL};
    const struct sandbox_host host = sandbox_host_for(&a->cfg.host, cmd->user);
    struct ferry_error err;
    pid_t bwrap = 0;
    if (limits.memory_default_bytes) { /* what lies in memory counts, too */
        limits.memory_default_bytes +=
            pod_dir_disks_bytes(host.pods_dir, pod_volumes_empty_bytes(&cmd->volumes));
    }
    int rc = pod_storage_ready(a->cfg.client, &host, pod.ns, e->uid, &cmd->volumes, &disks, &err);

    if (rc < 0) {
        start_failed(a, e, o, "FailedMount", &err);
        return;
    }
    if (sandbox_start(&host, &pod, &bwrap, &err) < 0) {
        start_failed(a, e, o, "FailedCreatePodSandBox", &err);
        return;
    }
    const char *unkept = cgroup_unkept(&cmd->limits, a->cfg.host.cgroups);
    if (unkept) {
        kube_record(a->recorder, o, KUBE_EVENT_WARNING, "LimitNotEnforced",
                    "This node has no control groups for %s: the limit of the pod is not kept",
                    unkept);
    }
    ferry_info("sandbox started", F_STR("pod", o->meta->name), F_STR("uid", e->uid));
    kube_record(a->recorder, o, KUBE_EVENT_NORMAL, "Started", "Started container compute");
    watch_sandbox(a, e, bwrap);
}

static int act(struct agent *a, struct entry *e, struct api_object *o, enum pod_action action,
               const struct pod_command *cmd, struct ferry_error *err)
{
    int rc = 0;

    switch (action) {
    case POD_NOTHING:
        break;
    case POD_START:
        start(a, e, o, cmd);
        kube_queue_add(a->queue, e->uid, KUBE_PRIORITY_USER);
        break;
    case POD_STOP:
        ferry_info("stopping a sandbox", F_STR("uid", e->uid));
        return sandbox_stop(&a->cfg.host, e->uid, err);
    case POD_KILL:
        ferry_warn("killing a sandbox", F_STR("uid", e->uid));
        return sandbox_signal(&a->cfg.host, e->uid, SIGKILL, err);
    case POD_REMOVE:
        rc = sandbox_remove(&a->cfg.host, e->uid, err);
        if (rc == 0) {
            entry_forget(a, e);
        }
        break;
    case POD_DELETE:
        rc = sandbox_remove(&a->cfg.host, e->uid, err);
        if (rc == 0) {
            rc = kube_client_delete(a->cfg.client, kube_ref_of(o),
                                    &(struct kube_delete_options){.uid = e->uid, .has_grace = true},
                                    err);
        }
        rc = rc == -FERRY_NOT_FOUND ? 0 : rc;
        break;
    }
    return rc;
}

/* Takes over the capability cache of a pod as long as nobody knows that it runs: no guest has been
 * put into it, so none had a hand in what other pods are given. True while that is waited for,
 * which the first guest of a node would have to do anyway. */
static bool harvests(struct agent *a, const struct entry *e, const struct api_object *o,
                     const struct sandbox_probe *p)
{
    int64_t age_ms = ferry_now_unix_ms() - p->started_ms;
    struct ferry_error err;

    if (!o || e->told || o->meta->deleted_ms || p->state != SANDBOX_RUNNING ||
        age_ms >= HARVEST_MS || wire_phase_is(o->u.pod.phase, PHASE_RUNNING) ||
        wire_pod_is_over(&o->u.pod) || cache_fresh(a->cfg.host.cache_dir)) {
        return false;
    }
    ferry_cleanup_free char *begun =
        ferry_asprintf("%s/%s/home/cache/libvirt", a->cfg.host.pods_dir, e->uid);
    int n = sandbox_harvest(&a->cfg.host, e->uid, &err);
    if (n < 0) {
        ferry_warn("cannot write the capability cache", F_STR("pod", e->uid), F_ERR(&err));
    }
    return n == 0 && (age_ms < LIBVIRTD_MS || access(begun, F_OK) == 0);
}

static int reconcile(void *ctx, const char *uid, struct kube_again *again, struct ferry_error *err)
{
    struct agent *a = ctx;
    api_cleanup_object struct api_object *o = NULL;
    struct pod_local local = {0};
    struct pod_command cmd = {.n = 0};
    struct ferry_error refused;

    pthread_mutex_lock(&a->lock);
    struct entry *e = entry_locked(a, uid);
    pthread_mutex_unlock(&a->lock);
    int rc = find_object(a, e, &o, err);
    if (rc == 0) {
        rc = sandbox_probe(&a->cfg.host, uid, &local.sandbox, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (local.sandbox.state == SANDBOX_RUNNING) {
        watch_sandbox(a, e, 0);
        readiness_watch(a->readiness, uid);
    } else {
        readiness_forget(a->readiness, uid);
    }
    local.ready_known = readiness_of(a->readiness, uid, &local.ready);
    if (o && pod_dialect_read(yyjson_obj_get((yyjson_val *)o->root, "spec"), &cmd, &refused) < 0) {
        local.unsupported = refused.msg;
    }
    const struct sandbox_host host = sandbox_host_for(&a->cfg.host, cmd.user);
    /* Before anybody hears that it runs: the launcher must find its taps. */
    if (local.sandbox.state == SANDBOX_RUNNING && o && !o->meta->deleted_ms &&
        pod_net_attach(a->cfg.client, &host, o, err) < 0) {
        kube_record(a->recorder, o, KUBE_EVENT_WARNING, "FailedCreatePodSandBox", "%s", err->msg);
        return ferry_wrap(err, "attaching the networks of pod %s", o->meta->name);
    }
    local.start_error = e->start_error;
    local.retry_ms = e->retry_ms;
    int64_t grace_s =
        o ? api_json_int(o->root, "/metadata/deletionGracePeriodSeconds", o->u.pod.grace_s) : 0;
    struct pod_decision d = pod_decide(o ? &o->u.pod : NULL, grace_s, &local, ferry_now_unix_ms());

    if (harvests(a, e, o, &local.sandbox)) {
        *again = (struct kube_again){.wanted = true,
                                     .after_ns = HARVEST_AGAIN_MS * FERRY_NS_PER_MS,
                                     .priority = KUBE_PRIORITY_USER};
        return 0;
    }
    e->told = local.sandbox.state == SANDBOX_RUNNING;
    rc = o ? write_report(a, o, &d.report, err) : 0;
    if (rc == 0) {
        rc = act(a, e, o, d.action, &cmd, err);
    }
    if (rc == 0 && d.again_ms) {
        int64_t left_ms = d.again_ms - ferry_now_unix_ms();

        *again = (struct kube_again){.wanted = true,
                                     .after_ns = (left_ms > 0 ? left_ms : 0) * FERRY_NS_PER_MS,
                                     .priority = KUBE_PRIORITY_USER};
    }
    return rc;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static int await_api(struct agent *a, bool (*stopping)(void), struct ferry_error *err)
{
    bool said = false;

    for (;;) {
        int rc = kube_informer_wait_synced(a->pods, ferry_now_ns() + FERRY_NS_PER_S, err);

        if (rc == 0) {
            return 0;
        }
        if (stopping()) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped while waiting for the API server");
        }
        if (!said) {
            ferry_warn("API server unreachable; running pods are left alone", F_ERR(err));
            said = true;
        }
    }
}

static void ready_changed(void *ctx, const char *uid)
{
    struct agent *a = ctx;

    kube_queue_add(a->queue, uid, KUBE_PRIORITY_USER);
}

static int run(struct agent *a, bool (*stopping)(void), struct ferry_error *err)
{
    ferry_cleanup_free char *selector = ferry_asprintf("spec.nodeName=%s", a->cfg.node);
    int rc = kube_recorder_start(a->cfg.client, "ferry-pods", a->cfg.node, &a->recorder, err);

    if (rc == 0) {
        rc = kube_informer_start(&(struct kube_informer_config){.client = a->cfg.client,
                                                                .kind = API_KIND_POD,
                                                                .field_selector = selector,
                                                                .on_delta = on_delta,
                                                                .ctx = a},
                                 &a->pods, err);
    }
    if (rc == 0) {
        rc = await_api(a, stopping, err);
    }
    if (rc == 0) {
        rc = readiness_start(&(struct readiness_config){.pods_dir = a->cfg.host.pods_dir,
                                                        .changed = ready_changed,
                                                        .ctx = a},
                             &a->readiness, err);
    }
    if (rc == 0) {
        rc = log_trim_start(a->cfg.host.pods_dir, &a->log_trim, err);
    }
    if (rc == 0) {
        rc = adopt(a, err);
    }
    if (rc == 0) {
        rc = kube_workers_start(&(struct kube_workers_config){.name = "pods",
                                                              .queue = a->queue,
                                                              .threads = WORKERS,
                                                              .reconcile = reconcile,
                                                              .ctx = a},
                                &a->workers, err);
    }
    return rc;
}

int agent_start(const struct agent_config *cfg, bool (*stopping)(void), struct agent **ret,
                struct ferry_error *err)
{
    struct agent *a = ferry_xcalloc(1, sizeof(*a));

    a->cfg = *cfg;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->watcher_ended, NULL);
    a->queue = kube_queue_new(NULL);
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    int rc =
        a->stop_fd < 0 ? ferry_fail_errno(err, errno, "making an eventfd") : run(a, stopping, err);
    if (rc < 0) {
        agent_stop(a);
        return rc;
    }
    *ret = a;
    return 0;
}

void agent_stop(struct agent *a)
{
    if (!a) {
        return;
    }
    kube_workers_stop(a->workers);
    readiness_stop(a->readiness);
    log_trim_stop(a->log_trim);
    kube_informer_stop(a->pods);
    if (a->stop_fd >= 0) {
        eventfd_write(a->stop_fd, 1);
    }
    pthread_mutex_lock(&a->lock);
    while (a->n_watchers) {
        pthread_cond_wait(&a->watcher_ended, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    kube_recorder_stop(a->recorder);
    kube_queue_free(a->queue);
    for (struct entry *e = a->entries, *next; e; e = next) {
        next = e->next;
        entry_free(e);
    }
    free(a->host_ip);
    ferry_closep(&a->stop_fd);
    pthread_cond_destroy(&a->watcher_ended);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
