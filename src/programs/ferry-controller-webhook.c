/* Theory of operation. Kubernetes posts an AdmissionReview for each migration that is made, each VM
 * or instance that is made, each VM that is changed, and each pod that is to be evicted
 * (deploy/kubernetes/webhook). The objects around it are read from the API by a client of this
 * file's own, because the controller's may not write while another leads; the rules are pure
 * (api/admit.h, api/instancetype, api/spec), the answer is made in control/review.c. What cannot be
 * read is a denial: an eviction that is let through ends a guest. A thread looks for new
 * certificates. */
#include "programs/ferry-controller-webhook.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "api/admit.h"
#include "api/instancetype/instancetype.h"
#include "api/instancetype/matcher.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "control/loops/review.h"
#include "control/loops/review_machine.h"
#include "http/server.h"
#include "kube/client.h"

enum {
    BACKLOG = 64,
    CONNECTIONS = 128,
    PEM_MAX = 1 << 20,
    BODY_MAX = 4 << 20, /* an object is at most 3 MiB, and it may come twice */
    LOOK_S = 5,
    BAD_REQUEST = 400,
    UNPROCESSABLE = 422,
    NOT_NOW = 429,
};

struct webhook {
    struct kube_client *client;
    struct http_server *http;
    char *cert, *key; /* paths */
    bool wants_certificate;
    pthread_t watcher;
    pthread_mutex_t lock; /* guards `stop` */
    pthread_cond_t wake;
    bool stop, watching;
    struct timespec cert_time; /* the watcher's */
};

/* ---- migrations --------------------------------------------------------------------------------
 */

static char *review_migration(struct webhook *w, const struct review *r)
{
    const char *name = api_json_str(r->object, "/spec/vmiName");
    api_cleanup_object struct api_object *vmi = NULL;
    kube_cleanup_list struct kube_list list = {0};
    struct ferry_error err;

    if (ferry_str_empty(name) || !r->ns) {
        return review_allow(r); /* the schema refuses it, in better words */
    }
    ferry_cleanup_free char *label = review_label(r->object);
    ferry_cleanup_free char *selector =
        strlen(name) < 64 ? ferry_asprintf("%s=%s", LABEL_VMI_NAME, name) : NULL;
    int rc = kube_client_get(w->client, kube_ref(API_KIND_VMI, r->ns, name), &vmi, &err);
    if (rc == 0 || rc == -FERRY_NOT_FOUND) {
        rc = kube_client_list(w->client, kube_ref(API_KIND_MIGRATION, r->ns, NULL),
                              &(struct kube_list_options){.label_selector = selector}, &list, &err);
    }
    if (rc < 0) {
        return review_deny(r, NOT_NOW, WIRE_ERROR_NONE, err.msg);
    }
    if (api_admit_move(name, vmi, list.items, list.n, &err) < 0) {
        return review_deny(r, BAD_REQUEST, wire_error_find(err.reason), err.msg);
    }
    return label ? review_patch(r, label) : review_allow(r);
}

/* ---- evictions ---------------------------------------------------------------------------------
 */

/* spec.configuration.evictionStrategy of the KubeVirt object; owned by the caller, or NULL. */
static int cluster_strategy(struct webhook *w, char **ret, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0};
    int rc = kube_client_list(w->client, kube_ref(API_KIND_KUBEVIRT, NULL, NULL), NULL, &list, err);

    *ret = rc == 0 && list.n ? ferry_strdup(api_json_str(list.items[0]->root,
                                                         "/spec/configuration/evictionStrategy"))
                             : NULL;
    return rc;
}

static int mark(struct webhook *w, const struct review *r, const struct api_object *vmi,
                const char *node, struct ferry_error *err)
{
    ferry_cleanup_free char *patch = review_mark(vmi, node, api_admit_by_descheduler(r->object));
    yyjson_val *options = yyjson_ptr_get((yyjson_val *)r->object, "/deleteOptions/dryRun");

    if (r->dry_run || yyjson_arr_size(options) > 0) {
        return 0;
    }
    return kube_client_patch(w->client, kube_ref_of(vmi), KUBE_PATCH_JSON, patch, NULL, err);
}

/* The pod and what belongs to it; 0 with `*ret_vmi` NULL when there is no such VMI. */
static int read_pod(struct webhook *w, const struct review *r, struct api_object **ret_pod,
                    struct api_object **ret_vmi, struct ferry_error *err)
{
    int rc = kube_client_get(w->client, kube_ref(API_KIND_POD, r->ns, r->name), ret_pod, err);
    const char *name = rc == 0 ? api_admit_vmi_of_pod((*ret_pod)->root) : NULL;

    if (rc == 0 && name) {
        rc = kube_client_get(w->client, kube_ref(API_KIND_VMI, r->ns, name), ret_vmi, err);
        rc = rc == -FERRY_NOT_FOUND ? 0 : rc;
    }
    return rc;
}

static char *review_eviction(struct webhook *w, const struct review *r)
{
    api_cleanup_object struct api_object *pod = NULL, *vmi = NULL;
    ferry_cleanup_free char *strategy = NULL;
    struct ferry_error err;
    char why[FERRY_ERROR_TEXT] = "";

    if (ferry_str_empty(r->ns) || ferry_str_empty(r->name)) {
        return review_deny(r, BAD_REQUEST, WIRE_ERROR_NONE, "an eviction without a pod");
    }
    int rc = read_pod(w, r, &pod, &vmi, &err);
    if (rc == -FERRY_NOT_FOUND) {
        return review_allow(r); /* the server says so itself */
    }
    rc = rc < 0 ? rc : cluster_strategy(w, &strategy, &err);
    if (rc < 0) {
        return review_deny(r, NOT_NOW, WIRE_ERROR_NONE, err.msg);
    }
    switch (api_admit_eviction(pod->root, vmi ? vmi->root : NULL, strategy, why, sizeof(why))) {
    case API_EVICTION_ALLOW:
        return review_allow(r);
    case API_EVICTION_MARK:
        if (mark(w, r, vmi, api_json_str(pod->root, "/spec/nodeName"), &err) < 0) {
            return review_deny(r, NOT_NOW, WIRE_ERROR_NONE, err.msg);
        }
        break;
    case API_EVICTION_DENY:
        break;
    }
    return review_deny(r, NOT_NOW, WIRE_ERROR_NONE, why);
}

/* ---- instance types of VMs ----------------------------------------------------------------------
 */

/* What the machine names, or the copy that it has; 0 with `*ret` NULL when that is not there. */
static int read_named(struct webhook *w, const struct review *r, const struct matcher *m,
                      struct api_object **ret, struct ferry_error *err)
{
    const struct api_resource *kind =
        m->revision ? api_resource_find("apps", "v1", "controllerrevisions") : m->resource;
    const struct kube_ref ref = {.resource = kind,
                                 .ns = kind->namespaced ? r->ns : NULL,
                                 .name = m->revision ? m->revision : m->name};
    int rc = kube_client_get(w->client, ref, ret, err);

    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* One whose spec stays is let be: what it names may have changed since. */
static bool spec_stays(const struct review *r)
{
    yyjson_val *before = yyjson_obj_get((yyjson_val *)r->old, "spec");
    yyjson_val *now = yyjson_obj_get((yyjson_val *)r->object, "spec");

    return before && now && yyjson_equals(before, now);
}

static char *deny_size(const struct review *r, const struct ferry_error *err)
{
    size_t len;
    const char *about = ferry_error_about(err, &len);
    ferry_cleanup_free char *why =
        ferry_asprintf("%.*s: Invalid value: %s", (int)len, about, ferry_error_words(err));

    return review_deny(r, UNPROCESSABLE, WIRE_ERROR_NONE, why);
}

static char *review_size(struct webhook *w, const struct review *r)
{
    api_cleanup_object struct api_object *type = NULL, *preference = NULL;
    struct api_object **const named[] = {
        [MATCHER_INSTANCETYPE] = &type, [MATCHER_PREFERENCE] = &preference};
    const yyjson_val *specs[MATCHER_COUNT] = {NULL};
    struct ferry_error err = {0};

    if (!r->object || spec_stays(r)) {
        return review_allow(r);
    }
    if (matcher_check(r->object, r->old, &err) < 0) {
        return deny_size(r, &err);
    }
    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (!matcher_read(r->object, of, &m) || !m.resource) {
            continue;
        }
        if (read_named(w, r, &m, named[of], &err) < 0) {
            ferry_warn("cannot read what a VM names; the controller will", F_STR("name", m.name),
                       F_ERR(&err));
        }
        specs[of] = *named[of] ? matcher_spec(&m, (*named[of])->root) : NULL;
    }
    if (instancetype_admit(r->object,
                           &(struct instancetype_pair){.type = specs[MATCHER_INSTANCETYPE],
                                                       .preference = specs[MATCHER_PREFERENCE]},
                           &err) < 0) {
        return deny_size(r, &err);
    }
    return review_allow(r);
}

/* ---- machines ----------------------------------------------------------------------------------
 */

static char *review_fields(struct webhook *w, const struct review *r)
{
    (void)w; /* nothing else is looked at */
    return review_machine(r);
}

/* ---- serving -----------------------------------------------------------------------------------
 */

static const struct {
    const char *path;
    char *(*review)(struct webhook *w, const struct review *r);
} doors[] = {
    {"/v1/admit/migrations", review_migration},
    {"/v1/admit/evictions", review_eviction},
    {"/v1/admit/sizes", review_size},
    {"/v1/admit/machines", review_fields},
};

static int find_door(const struct webhook *w, const struct http_exchange *x, size_t *ret,
                     struct ferry_error *err)
{
    if (w->wants_certificate && !http_peer(x)->certificate) {
        return ferry_fail(err, FERRY_DENIED, "a client certificate is needed here%s%s",
                          *http_peer(x)->tls_error ? ": " : "", http_peer(x)->tls_error);
    }
    for (size_t i = 0; i < FERRY_COUNT(doors); i++) {
        if (ferry_streq(http_path(x), doors[i].path) && ferry_streq(http_method(x), "POST")) {
            *ret = i;
            return 0;
        }
    }
    return ferry_fail(err, FERRY_NOT_FOUND, "there is only POST %s, %s, %s and %s", doors[0].path,
                      doors[1].path, doors[2].path, doors[3].path);
}

/* Before a byte of the body is read. */
static bool admit(struct http_exchange *x, struct http_terms *terms, void *ctx)
{
    struct ferry_error err;
    size_t door = 0;

    (void)terms;
    if (find_door(ctx, x, &door, &err) < 0) {
        http_answer_error(x, 0, &err);
        return false;
    }
    return true;
}

static void handle(struct http_exchange *x, void *ctx)
{
    struct webhook *w = ctx;
    review_cleanup struct review r = {0};
    struct ferry_error err;
    size_t len = 0, door = 0;
    const char *body = http_body(x, &len);

    if (ferry_streq(http_path(x), "/healthz")) {
        http_answer(x, 200, "text/plain", "ok", 2);
        return;
    }
    if (find_door(w, x, &door, &err) < 0 || review_parse(body, len, &r, &err) < 0) {
        http_answer_error(x, 0, &err);
        return;
    }
    ferry_cleanup_free char *answer = doors[door].review(w, &r);
    ferry_debug("reviewed", F_STR("door", doors[door].path), F_STR("namespace", r.ns),
                F_STR("name", r.name), F_STR("answer", answer));
    http_answer_json(x, 200, answer);
}

/* "127.0.0.1:9443", "[::]:9443" */
static int listen_on(const char *where, struct ferry_error *err)
{
    const char *colon = strrchr(where, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST | AI_PASSIVE};
    struct addrinfo *a = NULL;
    bool brackets = where[0] == '[' && colon && colon > where && colon[-1] == ']';
    ferry_cleanup_free char *host =
        colon ? ferry_strndup(where + brackets, (size_t)(colon - where) - 2 * (size_t)brackets)
              : NULL;
    int one = 1;

    if (!host || getaddrinfo(host, colon + 1, &hints, &a) != 0) {
        return ferry_fail(err, FERRY_INVALID, "--webhook: '%s' is not ADDRESS:PORT", where);
    }
    ferry_cleanup_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
              bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    int saved = errno;
    freeaddrinfo(a);
    return ok ? ferry_take_fd(&fd)
              : ferry_fail_errno(err, saved, "listening on %s for --webhook", where);
}

static void wipe(struct ferry_buf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->len);
    }
    ferry_buf_done(b);
}

static int read_pair(const struct webhook *w, struct ferry_buf *cert, struct ferry_buf *key,
                     struct ferry_error *err)
{
    int rc = ferry_read_file(w->cert, PEM_MAX, cert, err);

    return rc < 0 ? rc : ferry_read_file(w->key, PEM_MAX, key, err);
}

static struct timespec changed_at(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_mtim : (struct timespec){0};
}

/* A pair that does not fit (one file is written, the other not yet) is tried again. */
static void look_for_certificate(struct webhook *w)
{
    struct timespec now = changed_at(w->cert);
    ferry_cleanup_buf struct ferry_buf cert = {0};
    ferry_cleanup(wipe) struct ferry_buf key = {0};
    struct ferry_error err;

    if (!now.tv_sec || (now.tv_sec == w->cert_time.tv_sec && now.tv_nsec == w->cert_time.tv_nsec)) {
        return;
    }
    if (read_pair(w, &cert, &key, &err) < 0 ||
        http_server_renew(w->http, cert.data, key.data, &err) < 0) {
        ferry_warn("cannot use the webhook's new certificate, retrying", F_ERR(&err));
        return;
    }
    w->cert_time = now;
    ferry_info("certificate of the webhook renewed", F_STR("file", w->cert));
}

static void *watch(void *ctx)
{
    struct webhook *w = ctx;

    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        (void)ferry_cond_wait(&w->wake, &w->lock, ferry_now_ns() + LOOK_S * FERRY_NS_PER_S);
        if (!w->stop) {
            pthread_mutex_unlock(&w->lock);
            look_for_certificate(w);
            pthread_mutex_lock(&w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int serve(struct webhook *w, const struct webhook_config *cfg, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf cert = {0}, ca = {0};
    ferry_cleanup(wipe) struct ferry_buf key = {0};

    w->cert_time = changed_at(w->cert);
    int rc = read_pair(w, &cert, &key, err);
    if (rc == 0 && cfg->client_ca) {
        rc = ferry_read_file(cfg->client_ca, PEM_MAX, &ca, err);
    }
    int fd = rc < 0 ? rc : listen_on(cfg->listen, err);
    if (fd < 0) {
        return fd;
    }
    return http_server_start(
        &(struct http_server_config){.name = "webhook",
                                     .listen_fd = fd,
                                     .cert_pem = cert.data,
                                     .key_pem = key.data,
                                     .ca_pem = cfg->client_ca ? ca.data : cert.data,
                                     .max_body = BODY_MAX,
                                     .max_connections = CONNECTIONS,
                                     .admit = admit,
                                     .handle = handle,
                                     .ctx = w},
        &w->http, err);
}

int webhook_start(const struct webhook_config *cfg, struct webhook **ret, struct ferry_error *err)
{
    struct webhook *w = ferry_xcalloc(1, sizeof(*w));

    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->cert = ferry_strdup(cfg->cert);
    w->key = ferry_strdup(cfg->key);
    w->wants_certificate = cfg->client_ca != NULL;
    int rc = kube_client_open(cfg->kubeconfig, &w->client, err);
    rc = rc < 0 ? rc : serve(w, cfg, err);
    if (rc == 0 && pthread_create(&w->watcher, NULL, watch, w) != 0) {
        rc = ferry_fail(err, FERRY_FATAL, "starting a thread for the webhook");
    }
    if (rc < 0) {
        webhook_stop(w);
        return rc;
    }
    w->watching = true;
    *ret = w;
    return 0;
}

void webhook_stop(struct webhook *w)
{
    if (!w) {
        return;
    }
    if (w->watching) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->wake);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->watcher, NULL);
    }
    if (w->http) {
        http_server_stop(w->http);
    }
    kube_client_free(w->client);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->cert);
    free(w->key);
    free(w);
}
