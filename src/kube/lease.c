#include "kube/lease.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"

enum {
    DURATION_S = 15,
    TRUST_MS = 10000, /* without a renewal */
    RENEW_MS = 3000,
    RECHECK_MS = 500, /* while waiting for it */
};

struct kube_lease {
    struct kube_lease_config cfg;
    char *ns, *name, *self;
    pthread_t thread;

    /* Of whoever looks: the caller of hold, then the thread. */
    char *seen_version;
    int64_t seen_ns; /* when that version was first seen */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    int64_t renewed_ns; /* 0 = not ours */
    bool stopping;
};

/* ---- identity --------------------------------------------------------------------------------
 */

/* Host, boot and pid namespace: what must be equal for a pid to mean anything here. */
static char *place(void)
{
    char host[HOST_NAME_MAX + 1] = "";
    ferry_cleanup_buf struct ferry_buf boot = {0};
    struct stat st = {0};

    gethostname(host, sizeof(host) - 1);
    ferry_read_file("/proc/sys/kernel/random/boot_id", 64, &boot, NULL);
    stat("/proc/self/ns/pid", &st);
    return ferry_asprintf("%s_%.8s_%" PRIu64, host, boot.data ? boot.data : "",
                          (uint64_t)st.st_ino);
}

char *kube_lease_identity(void)
{
    ferry_cleanup_free char *here = place();

    return ferry_asprintf("%s_%d_%" PRIu64, here, (int)getpid(), ferry_proc_start_time(getpid()));
}

bool kube_lease_is_gone(const char *identity)
{
    ferry_cleanup_free char *here = place();
    size_t len = strlen(here);
    uint64_t start = 0;
    int pid = 0, end = 0;

    if (strncmp(identity, here, len) != 0 ||
        sscanf(identity + len, "_%d_%" SCNu64 "%n", &pid, &start, &end) != 2 ||
        identity[len + (size_t)end] || pid <= 0) {
        return false;
    }
    return ferry_proc_start_time(pid) != start;
}

/* ---- decision --------------------------------------------------------------------------------
 */

enum kube_lease_step kube_lease_decide(const struct kube_lease_view *v)
{
    if (!v->lease) {
        return KUBE_LEASE_CREATE;
    }
    if (ferry_streq(v->lease->holder, v->self)) {
        return KUBE_LEASE_RENEW;
    }
    int64_t duration_s = v->lease->duration_s > 0 ? v->lease->duration_s : DURATION_S;
    bool expired = v->unchanged_ms >= duration_s * 1000;
    return ferry_str_empty(v->lease->holder) || expired || v->holder_is_gone ? KUBE_LEASE_TAKE
                                                                             : KUBE_LEASE_WAIT;
}

/* ---- writes ----------------------------------------------------------------------------------
 */

static struct kube_ref lease_ref(const struct kube_lease *l)
{
    return kube_ref(API_KIND_LEASE, l->ns, l->name);
}

static int create(struct kube_lease *l, struct ferry_error *err)
{
    char now[FERRY_RFC3339_SIZE];
    ferry_cleanup_free char *body = ferry_asprintf(
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"%s\"},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%d,"
        "\"acquireTime\":\"%s\",\"renewTime\":\"%s\",\"leaseTransitions\":0}}",
        l->name, l->ns, l->self, DURATION_S, ferry_rfc3339_micro(ferry_now_unix_ms(), now), now);

    return kube_client_create(l->cfg.client, lease_ref(l), body, NULL, err);
}

/* `holder` "" gives it back. */
static int write_holder(struct kube_lease *l, const struct api_object *o, const char *holder,
                        bool taken, struct ferry_error *err)
{
    char now[FERRY_RFC3339_SIZE];
    struct api_patch *p = api_patch_new();

    ferry_rfc3339_micro(ferry_now_unix_ms(), now);
    api_patch_test_str(p, "/metadata/resourceVersion", o->meta->resource_version);
    if (!yyjson_obj_get((yyjson_val *)o->root, "spec")) {
        api_patch_add_raw(p, "/spec", "{}");
    }
    api_patch_add_str(p, "/spec/holderIdentity", holder);
    api_patch_add_int(p, "/spec/leaseDurationSeconds", DURATION_S);
    api_patch_add_str(p, "/spec/renewTime", now);
    if (taken) {
        api_patch_add_str(p, "/spec/acquireTime", now);
        api_patch_add_int(p, "/spec/leaseTransitions",
                          api_json_int(o->root, "/spec/leaseTransitions", 0) + 1);
    }
    ferry_cleanup_free char *body = api_patch_take(p);
    return kube_client_patch(l->cfg.client, lease_ref(l), KUBE_PATCH_JSON, body, NULL, err);
}

/* One look at the Lease and what follows. 1 = it is ours now, 0 = it is not. */
static int look(struct kube_lease *l, struct ferry_error *err)
{
    api_cleanup_object struct api_object *o = NULL;
    int rc = kube_client_get(l->cfg.client, lease_ref(l), &o, err);

    if (rc < 0 && rc != -FERRY_NOT_FOUND) {
        return rc;
    }
    if (o && !ferry_streq(l->seen_version, o->meta->resource_version)) {
        free(l->seen_version);
        l->seen_version = ferry_strdup(o->meta->resource_version);
        l->seen_ns = ferry_now_ns();
    }
    const char *holder = o ? o->u.lease.holder : NULL;
    enum kube_lease_step step = kube_lease_decide(
        &(struct kube_lease_view){.lease = o ? &o->u.lease : NULL,
                                  .self = l->self,
                                  .unchanged_ms = (ferry_now_ns() - l->seen_ns) / FERRY_NS_PER_MS,
                                  .holder_is_gone = holder && kube_lease_is_gone(holder)});

    switch (step) {
    case KUBE_LEASE_CREATE:
        rc = create(l, err);
        break;
    case KUBE_LEASE_TAKE:
    case KUBE_LEASE_RENEW:
        assert(o);
        rc = write_holder(l, o, l->self, step == KUBE_LEASE_TAKE, err);
        break;
    case KUBE_LEASE_WAIT:
        return 0;
    }
    return rc == -FERRY_CONFLICT ? 0 : rc < 0 ? rc : 1; /* another was quicker: look again */
}

/* ---- holding ---------------------------------------------------------------------------------
 */

static void note_renewed(struct kube_lease *l, int64_t asked_ns)
{
    pthread_mutex_lock(&l->lock);
    l->renewed_ns = asked_ns; /* when it was asked for: the earliest that others count from */
    pthread_mutex_unlock(&l->lock);
}

static void *lease_thread(void *arg)
{
    struct kube_lease *l = arg;

    for (;;) {
        int64_t until = ferry_now_ns() + RENEW_MS * FERRY_NS_PER_MS;
        struct ferry_error err = {0};

        pthread_mutex_lock(&l->lock);
        while (!l->stopping && ferry_now_ns() < until) {
            ferry_cond_wait(&l->changed, &l->lock, until);
        }
        bool stop = l->stopping;
        pthread_mutex_unlock(&l->lock);
        /* Once lost it is not taken again behind the back of whoever was told so. */
        if (stop || !kube_lease_held(l)) {
            return NULL;
        }
        int64_t asked_ns = ferry_now_ns();
        int rc = look(l, &err);
        if (rc > 0) {
            note_renewed(l, asked_ns);
        } else if (rc < 0) {
            ferry_warn("cannot renew the lease", F_STR("lease", l->name), F_ERR(&err));
        }
    }
}

static void lease_free(struct kube_lease *l)
{
    free(l->ns);
    free(l->name);
    free(l->self);
    free(l->seen_version);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Until it is ours: 0; CANCELLED when told to stop. */
static int wait_for_it(struct kube_lease *l, struct ferry_error *err)
{
    bool said = false;

    for (;;) {
        struct ferry_error why = {0};
        int64_t asked_ns = ferry_now_ns();
        int rc = look(l, &why);

        if (rc > 0) {
            note_renewed(l, asked_ns);
            return 0;
        }
        if (!said) {
            said = true;
            ferry_info("waiting for the lease", F_STR("lease", l->name),
                       F_STR("why", rc < 0 ? why.msg : "another holds it"));
        }
        if (l->cfg.stop && l->cfg.stop()) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped while waiting for lease %s", l->name);
        }
        ferry_sleep_ms(RECHECK_MS);
    }
}

int kube_lease_hold(const struct kube_lease_config *cfg, struct kube_lease **ret,
                    struct ferry_error *err)
{
    struct kube_lease *l = ferry_xcalloc(1, sizeof(*l));

    l->cfg = *cfg;
    l->ns = ferry_strdup(cfg->ns);
    l->name = ferry_strdup(cfg->name);
    l->self = kube_lease_identity();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    int rc = wait_for_it(l, err);
    if (rc == 0) {
        int e = pthread_create(&l->thread, NULL, lease_thread, l);

        rc = e ? ferry_fail_errno(err, e, "starting to renew lease %s", l->name) : 0;
    }
    if (rc < 0) {
        lease_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

bool kube_lease_held(struct kube_lease *l)
{
    pthread_mutex_lock(&l->lock);
    bool held = l->renewed_ns && ferry_now_ns() - l->renewed_ns < TRUST_MS * FERRY_NS_PER_MS;
    pthread_mutex_unlock(&l->lock);
    return held;
}

void kube_lease_release(struct kube_lease *l)
{
    if (!l) {
        return;
    }
    api_cleanup_object struct api_object *o = NULL;

    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    /* Best effort: one that is not given back expires. */
    if (kube_lease_held(l) && kube_client_get(l->cfg.client, lease_ref(l), &o, NULL) == 0 &&
        ferry_streq(o->u.lease.holder, l->self)) {
        write_holder(l, o, "", false, NULL);
    }
    lease_free(l);
}
