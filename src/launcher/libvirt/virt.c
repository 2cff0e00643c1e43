/* Theory of operation. libvirt delivers events on the thread that runs its event loop; the
 * callbacks below only put them into a ring and wake the waiters. When the connection breaks,
 * libvirt calls on_close; the next virt_open() (the launcher's main loop calls it often) replaces
 * it, on a thread of its own, because libvirt's way of connecting has no deadline: a libvirtd that
 * hangs must not hang us. Whoever uses the connection holds a reference of its own, so replacing it
 * under a running call is safe: the call fails with an error of class RETRY. */
#include "launcher/libvirt/virt.h"

#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/str.h"

/* libvirtd and we are on one machine: silence means that it hangs. */
enum {
    KEPT = 64,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_COUNT = 5,
    CALLBACKS = 8,
    OPEN_WAIT_MS = 1000
};

struct virt {
    char *uri, *domain_name; /* immutable */
    pthread_mutex_t lock;
    pthread_cond_t more;
    virConnectPtr conn;             /* guarded by lock; NULL = not connected */
    bool closed;                    /* guarded by lock: conn is dead */
    uint64_t next;                  /* guarded by lock: sequence number of the next event */
    struct virt_event events[KEPT]; /* guarded by lock: event `seq` at seq % KEPT */
    unsigned long qemu_version;     /* guarded by lock: 0 = not asked for on this connection */
    bool opening;                   /* guarded by lock: run_open() works */
    int open_rc;                    /* guarded by lock: what it came back with */
    struct ferry_error open_err;    /* likewise */
    int callbacks[CALLBACKS];       /* used by run_open() and virt_free() only */
};

static void push(struct virt *v, struct virt_event e)
{
    pthread_mutex_lock(&v->lock);
    e.seq = v->next++;
    v->events[e.seq % KEPT] = e;
    pthread_cond_broadcast(&v->more);
    pthread_mutex_unlock(&v->lock);
}

/* ---- libvirt's thread --------------------------------------------------------------------------
 */

static bool ours(const struct virt *v, virDomainPtr d)
{
    return ferry_streq(virDomainGetName(d), v->domain_name);
}

static void push_guest(struct virt *v, virDomainPtr d, struct guest_event e)
{
    if (ours(v, d) && e.what != GUEST_NOTHING) {
        push(v, (struct virt_event){.type = VIRT_EVENT_GUEST, .guest = e});
    }
}

static int on_lifecycle(virConnectPtr c, virDomainPtr d, int event, int detail, void *ctx)
{
    struct virt *v = ctx;

    (void)c;
    if (ours(v, d)) {
        ferry_debug("lifecycle event", F_INT("event", event), F_INT("detail", detail));
        push_guest(v, d, guest_event_of_lifecycle(event, detail)); /* first: it is the reason */
        push(v, (struct virt_event){.type = VIRT_EVENT_LIFECYCLE});
    }
    return 0;
}

static void on_iteration(virConnectPtr c, virDomainPtr d, int iteration, void *ctx)
{
    struct virt *v = ctx;

    (void)c;
    if (ours(v, d)) {
        push(v, (struct virt_event){.type = VIRT_EVENT_ITERATION, .iteration = iteration});
    }
}

static void on_job_completed(virConnectPtr c, virDomainPtr d, virTypedParameterPtr params, int n,
                             void *ctx)
{
    struct virt *v = ctx;
    struct virt_event e = {.type = VIRT_EVENT_JOB_COMPLETED};

    (void)c;
    if (ours(v, d)) {
        sample_decode(VIR_DOMAIN_JOB_COMPLETED, params, n, &e.completed);
        push(v, e);
    }
}

static void on_reboot(virConnectPtr c, virDomainPtr d, void *ctx)
{
    (void)c;
    push_guest(ctx, d, (struct guest_event){.what = GUEST_RESET});
}

static void on_watchdog(virConnectPtr c, virDomainPtr d, int action, void *ctx)
{
    (void)c;
    push_guest(ctx, d, guest_event_of_watchdog(action));
}

static void on_io_error(virConnectPtr c, virDomainPtr d, const char *path, const char *alias,
                        int action, const char *reason, void *ctx)
{
    (void)c;
    (void)path;
    push_guest(ctx, d, guest_event_of_disk(action, alias, reason));
}

static void on_device(virConnectPtr c, virDomainPtr d, const char *alias, void *ctx)
{
    struct virt *v = ctx;

    (void)c;
    if (ours(v, d)) {
        ferry_debug("a device went, or did not", F_STR("alias", alias));
        push(v, (struct virt_event){.type = VIRT_EVENT_DEVICE});
    }
}

static void on_close(virConnectPtr c, int reason, void *ctx)
{
    struct virt *v = ctx;

    (void)reason;
    pthread_mutex_lock(&v->lock);
    bool current = v->conn == c;
    v->closed = v->closed || current;
    pthread_mutex_unlock(&v->lock);
    if (current) {
        push(v, (struct virt_event){.type = VIRT_EVENT_CLOSED});
    }
}

static void *run_loop(void *unused)
{
    (void)unused;
    for (;;) {
        virEventRunDefaultImpl();
    }
    return NULL;
}

static void no_error_output(void *ctx, virErrorPtr e)
{
    (void)ctx;
    (void)e;
}

static void on_tick(int timer, void *ctx)
{
    (void)timer;
    (void)ctx;
}

/* ---- connection --------------------------------------------------------------------------------
 */

int virt_fail(struct ferry_error *err, const char *fmt, ...)
{
    virErrorPtr e = virGetLastError();
    enum ferry_class cls = FERRY_FATAL;
    char what[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    switch (e ? e->code : VIR_ERR_OK) {
    case VIR_ERR_NO_DOMAIN:
        cls = FERRY_NOT_FOUND;
        break;
    case VIR_ERR_NO_CONNECT:
    case VIR_ERR_SYSTEM_ERROR:
    case VIR_ERR_RPC:
    case VIR_ERR_OPERATION_TIMEOUT:
    case VIR_ERR_INTERNAL_ERROR: /* among them "client socket is closed" */
        cls = FERRY_RETRY;
        break;
    case VIR_ERR_OPERATION_INVALID:
        cls = FERRY_CONFLICT;
        break;
    case VIR_ERR_XML_ERROR:
    case VIR_ERR_CONFIG_UNSUPPORTED:
    case VIR_ERR_INVALID_ARG:
        cls = FERRY_INVALID;
        break;
    default:
        break;
    }
    return ferry_fail(err, cls, "%s: %s", what, e && e->message ? e->message : "unknown error");
}

int virt_new(const char *uri, const char *domain_name, struct virt **ret, struct ferry_error *err)
{
    pthread_t thread;

    virSetErrorFunc(NULL, no_error_output);
    if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0) {
        return virt_fail(err, "starting libvirt's client");
    }
    /* Without a timer the loop could sleep for ever before the first connection. */
    virEventAddTimeout(1000, on_tick, NULL, NULL);
    struct virt *v = ferry_xcalloc(1, sizeof(*v));
    v->uri = ferry_strdup(uri);
    v->domain_name = ferry_strdup(domain_name);
    v->next = 1;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->more, NULL);
    int rc = pthread_create(&thread, NULL, run_loop, NULL);
    if (rc != 0) {
        virt_free(v);
        return ferry_fail_errno(err, rc, "starting libvirt's event loop");
    }
    pthread_detach(thread);
    *ret = v;
    return 0;
}

static void drop_connection(struct virt *v)
{
    pthread_mutex_lock(&v->lock);
    virConnectPtr old = v->conn;
    v->conn = NULL;
    v->closed = false;
    pthread_mutex_unlock(&v->lock);
    if (old) {
        for (size_t i = 0; i < CALLBACKS; i++) {
            if (v->callbacks[i] >= 0) {
                virConnectDomainEventDeregisterAny(old, v->callbacks[i]);
            }
        }
        virConnectUnregisterCloseCallback(old, on_close);
        virConnectClose(old);
    }
}

void virt_free(struct virt *v)
{
    if (!v) {
        return;
    }
    pthread_mutex_lock(&v->lock);
    bool opening = v->opening;
    pthread_mutex_unlock(&v->lock);
    if (!opening) { /* else a libvirtd that hangs holds a thread in here; the process ends anyway */
        drop_connection(v);
        pthread_cond_destroy(&v->more);
        pthread_mutex_destroy(&v->lock);
        free(v->uri);
        free(v->domain_name);
        free(v);
    }
}

static int subscribe(struct virt *v, virConnectPtr c, struct ferry_error *err)
{
    static const struct {
        int id;
        virConnectDomainEventGenericCallback callback;
    } wanted[CALLBACKS] = {
        {VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle)},
        {VIR_DOMAIN_EVENT_ID_REBOOT, VIR_DOMAIN_EVENT_CALLBACK(on_reboot)},
        {VIR_DOMAIN_EVENT_ID_WATCHDOG, VIR_DOMAIN_EVENT_CALLBACK(on_watchdog)},
        {VIR_DOMAIN_EVENT_ID_IO_ERROR_REASON, VIR_DOMAIN_EVENT_CALLBACK(on_io_error)},
        {VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION, VIR_DOMAIN_EVENT_CALLBACK(on_iteration)},
        {VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, VIR_DOMAIN_EVENT_CALLBACK(on_job_completed)},
        {VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
        {VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
    };

    for (size_t i = 0; i < CALLBACKS; i++) {
        v->callbacks[i] = -1;
    }
    if (virConnectSetKeepAlive(c, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT) < 0 ||
        virConnectRegisterCloseCallback(c, on_close, v, NULL) < 0) {
        return virt_fail(err, "watching the connection to libvirtd");
    }
    for (size_t i = 0; i < CALLBACKS; i++) {
        v->callbacks[i] =
            virConnectDomainEventRegisterAny(c, NULL, wanted[i].id, wanted[i].callback, v, NULL);
        if (v->callbacks[i] < 0) {
            return virt_fail(err, "subscribing to libvirt's events");
        }
    }
    return 0;
}

static int connect_and_subscribe(struct virt *v, struct ferry_error *err)
{
    drop_connection(v);
    virConnectPtr c = virConnectOpen(v->uri);
    if (!c) {
        return virt_fail(err, "connecting to %s", v->uri);
    }
    pthread_mutex_lock(&v->lock);
    v->conn = c;
    pthread_mutex_unlock(&v->lock);
    int rc = subscribe(v, c, err);
    if (rc < 0) {
        drop_connection(v);
    }
    return rc;
}

static void *run_open(void *ctx)
{
    struct virt *v = ctx;
    struct ferry_error err = {0};
    int rc = connect_and_subscribe(v, &err);

    if (rc == 0) {
        push(v, (struct virt_event){.type = VIRT_EVENT_OPENED});
    }
    pthread_mutex_lock(&v->lock);
    v->qemu_version = 0; /* it may have been replaced with libvirtd */
    v->open_rc = rc;
    v->open_err = err;
    v->opening = false;
    pthread_cond_broadcast(&v->more);
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* With v->lock held: waits a while for run_open(). */
static int await_open_locked(struct virt *v, struct ferry_error *err)
{
    int64_t deadline_ns = ferry_now_ns() + OPEN_WAIT_MS * FERRY_NS_PER_MS;

    while (v->opening && ferry_now_ns() < deadline_ns) {
        ferry_cond_wait(&v->more, &v->lock, deadline_ns);
    }
    if (v->opening) {
        return ferry_fail(err, FERRY_RETRY, "connecting to %s: no answer yet", v->uri);
    }
    if (v->open_rc < 0 && err) {
        *err = v->open_err;
    }
    return v->open_rc;
}

int virt_open(struct virt *v, struct ferry_error *err)
{
    pthread_t thread;
    int rc = 0;

    pthread_mutex_lock(&v->lock);
    bool open = v->conn && !v->closed && !v->opening;
    if (!open && !v->opening) {
        v->opening = true;
        rc = pthread_create(&thread, NULL, run_open, v);
        if (rc == 0) {
            pthread_detach(thread);
        } else {
            v->opening = false;
            rc = ferry_fail_errno(err, rc, "starting a thread");
        }
    }
    if (!open && rc == 0) {
        rc = await_open_locked(v, err);
    }
    pthread_mutex_unlock(&v->lock);
    return rc;
}

virConnectPtr virt_connection(struct virt *v, struct ferry_error *err)
{
    virConnectPtr c = NULL;

    pthread_mutex_lock(&v->lock);
    if (v->conn && !v->closed) {
        c = v->conn;
        virConnectRef(c);
    }
    pthread_mutex_unlock(&v->lock);
    if (!c) {
        ferry_fail(err, FERRY_RETRY, "libvirtd is not connected at the moment");
    }
    return c;
}

int virt_qemu_version(struct virt *v, unsigned long *ret, struct ferry_error *err)
{
    pthread_mutex_lock(&v->lock);
    *ret = v->qemu_version;
    pthread_mutex_unlock(&v->lock);
    if (*ret) {
        return 0;
    }
    virConnectPtr c = virt_connection(v, err);
    if (!c) {
        return -FERRY_RETRY;
    }
    int rc = virConnectGetVersion(c, ret) < 0 ? virt_fail(err, "asking for QEMU's version") : 0;
    virConnectClose(c);
    if (rc == 0) {
        pthread_mutex_lock(&v->lock);
        v->qemu_version = *ret;
        pthread_mutex_unlock(&v->lock);
    }
    return rc;
}

/* ---- the domain --------------------------------------------------------------------------------
 */

virDomainPtr virt_domain(struct virt *v, struct ferry_error *err)
{
    virConnectPtr c = virt_connection(v, err);

    if (!c) {
        return NULL;
    }
    virDomainPtr d = virDomainLookupByName(c, v->domain_name);
    if (!d) {
        virt_fail(err, "domain %s", v->domain_name);
    }
    virConnectClose(c);
    return d;
}

int virt_view(struct virt *v, struct view *ret, struct ferry_error *err)
{
    struct ferry_error inner;
    virt_cleanup_domain virDomainPtr d = virt_domain(v, &inner);
    int state, reason;

    if (!d && inner.cls == FERRY_NOT_FOUND) {
        *ret = view_none();
        return 0;
    }
    if (!d) {
        if (err) {
            *err = inner;
        }
        return -(int)inner.cls;
    }
    if (virDomainGetState(d, &state, &reason, 0) < 0) {
        if (virGetLastErrorCode() == VIR_ERR_NO_DOMAIN) {
            *ret = view_none();
            return 0;
        }
        return virt_fail(err, "state of domain %s", v->domain_name);
    }
    *ret = view_of(state, reason);
    return 0;
}

int virt_sample(struct virt *v, bool completed, struct launcher_sample *ret,
                struct ferry_error *err)
{
    virt_cleanup_domain virDomainPtr d = virt_domain(v, err);
    virTypedParameterPtr params = NULL;
    int type = VIR_DOMAIN_JOB_NONE, n = 0;
    unsigned flags =
        completed ? VIR_DOMAIN_JOB_STATS_COMPLETED | VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED : 0;

    if (!d) {
        return err ? -(int)err->cls : -FERRY_RETRY;
    }
    if (virDomainGetJobStats(d, &type, &params, &n, flags) < 0) {
        return virt_fail(err, "job statistics of domain %s", v->domain_name);
    }
    sample_decode(type, params, n, ret);
    virTypedParamsFree(params, n);
    return 0;
}

bool virt_job_over(struct virt *v)
{
    virt_cleanup_domain virDomainPtr d = virt_domain(v, NULL);
    virTypedParameterPtr params = NULL;
    int type = VIR_DOMAIN_JOB_NONE, n = 0;

    /* While a migration comes in libvirt answers with an error: not over. */
    if (!d || virDomainGetJobStats(d, &type, &params, &n, 0) < 0) {
        return false;
    }
    virTypedParamsFree(params, n);
    return type == VIR_DOMAIN_JOB_NONE;
}

/* ---- events ------------------------------------------------------------------------------------
 */

bool virt_next_event(struct virt *v, uint64_t after, int64_t deadline_ns, struct virt_event *ret)
{
    bool found = true;

    pthread_mutex_lock(&v->lock);
    while (after + 1 >= v->next) {
        if (!ferry_cond_wait(&v->more, &v->lock, deadline_ns)) {
            found = after + 1 < v->next;
            break;
        }
    }
    if (found) {
        uint64_t seq = after + 1;

        if (v->next - seq > KEPT) {
            seq = v->next - KEPT; /* a slow reader loses the oldest; it looks at states anyway */
        }
        *ret = v->events[seq % KEPT];
    }
    pthread_mutex_unlock(&v->lock);
    return found;
}

uint64_t virt_last_event(struct virt *v)
{
    pthread_mutex_lock(&v->lock);
    uint64_t last = v->next - 1;
    pthread_mutex_unlock(&v->lock);
    return last;
}

void virt_wake(struct virt *v)
{
    push(v, (struct virt_event){.type = VIRT_EVENT_WAKE});
}
