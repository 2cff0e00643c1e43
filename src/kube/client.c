#include "kube/client.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "api/wire/wire_error.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"

enum {
    CALL_TIMEOUT_MS = 30000,
    LIST_TIMEOUT_MS = 120000,
    LIST_PAGE = 500,
    CONFLICTS_MAX = 5,
    CONFLICT_PAUSE_MS = 5,
    LOOK_S = 5,
};

struct kube_client {
    struct http_client *http;
    char *namespace_, *ca_pem;
    char *kubeconfig;     /* or NULL: as given once and for all */
    pthread_mutex_t lock; /* guards `seen` and `look_ns` */
    struct stat seen;     /* the kubeconfig as it was read */
    int64_t look_ns;
    bool (*_Atomic may_write)(void *ctx);
    void *_Atomic fence_ctx; /* set before it */
    void (*warn)(const char *text);
};

void kube_client_fence(struct kube_client *c, bool (*may_write)(void *ctx), void *ctx)
{
    if (may_write) {
        c->fence_ctx = ctx;
    }
    c->may_write = may_write;
}

/* ---- opening ---------------------------------------------------------------------------------
 */

int kube_client_new(const struct kube_config *config, struct kube_client **ret,
                    struct ferry_error *err)
{
    struct http_client *http = NULL;
    int rc = http_client_new(&(struct http_client_config){.base_url = config->server,
                                                          .ca_pem = config->ca_pem,
                                                          .cert_pem = config->cert_pem,
                                                          .key_pem = config->key_pem,
                                                          .token = config->token,
                                                          .token_file = config->token_file},
                             &http, err);

    if (rc < 0) {
        return rc;
    }
    struct kube_client *c = ferry_xcalloc(1, sizeof(*c));
    c->http = http;
    c->ca_pem = ferry_strdup(config->ca_pem);
    c->namespace_ =
        ferry_strdup(ferry_str_empty(config->namespace_) ? "default" : config->namespace_);
    pthread_mutex_init(&c->lock, NULL);
    *ret = c;
    return 0;
}

int kube_client_open(const char *kubeconfig, struct kube_client **ret, struct ferry_error *err)
{
    kube_cleanup_config struct kube_config config = {0};
    struct stat st = {0};
    bool there = stat(kubeconfig, &st) == 0;
    int rc = kube_config_load(kubeconfig, &config, err);

    if (rc == -FERRY_NOT_FOUND && access(kubeconfig, F_OK) < 0 &&
        getenv("KUBERNETES_SERVICE_HOST")) {
        ferry_info("no kubeconfig: acting as the service account of this pod",
                   F_STR("file", kubeconfig));
        rc = kube_config_in_cluster(KUBE_SERVICE_ACCOUNT_DIR, &config, err);
    }
    rc = rc < 0 ? rc : kube_client_new(&config, ret, err);
    if (rc == 0 && there) {
        (*ret)->kubeconfig = ferry_strdup(kubeconfig);
        (*ret)->seen = st;
    }
    return rc;
}

/* It is time to look, and the file is another than the one that was read. */
static bool kubeconfig_changed(struct kube_client *c)
{
    int64_t now = ferry_now_ns();
    struct stat st;
    bool changed = false;

    pthread_mutex_lock(&c->lock);
    if (c->kubeconfig && now >= c->look_ns) {
        c->look_ns = now + LOOK_S * FERRY_NS_PER_S;
        changed = stat(c->kubeconfig, &st) == 0 &&
                  (st.st_ino != c->seen.st_ino || st.st_size != c->seen.st_size ||
                   st.st_mtim.tv_sec != c->seen.st_mtim.tv_sec ||
                   st.st_mtim.tv_nsec != c->seen.st_mtim.tv_nsec);
        c->seen = changed ? st : c->seen;
    }
    pthread_mutex_unlock(&c->lock);
    return changed;
}

/* Certificates are replaced before they end. Where the server is does not change under a program
 * that runs. */
static void refresh(struct kube_client *c)
{
    kube_cleanup_config struct kube_config config = {0};
    struct ferry_error err;

    if (!kubeconfig_changed(c)) {
        return;
    }
    if (kube_config_load(c->kubeconfig, &config, &err) < 0) {
        ferry_warn("the changed kubeconfig is invalid; the previous one stays in use", F_ERR(&err));
    } else if (config.cert_pem && config.key_pem) {
        http_client_renew(c->http, config.cert_pem, config.key_pem);
        ferry_info("certificate of the kubeconfig renewed", F_STR("file", c->kubeconfig));
    }
}

void kube_client_free(struct kube_client *c)
{
    if (!c) {
        return;
    }
    http_client_free(c->http);
    pthread_mutex_destroy(&c->lock);
    free(c->kubeconfig);
    free(c->namespace_);
    free(c->ca_pem);
    free(c);
}

struct http_client *kube_client_http(struct kube_client *c)
{
    refresh(c);
    return c->http;
}

const char *kube_client_ca(const struct kube_client *c)
{
    return c->ca_pem;
}

const char *kube_client_namespace(const struct kube_client *c)
{
    return c->namespace_;
}

/* ---- references ------------------------------------------------------------------------------
 */

struct kube_ref kube_ref(enum api_kind kind, const char *ns, const char *name)
{
    return (struct kube_ref){.resource = api_resource_of_kind(kind), .ns = ns, .name = name};
}

struct kube_ref kube_ref_of(const struct api_object *o)
{
    return kube_ref(o->kind, o->meta->namespace_, o->meta->name);
}

struct kube_ref kube_ref_status(const struct api_object *o)
{
    struct kube_ref ref = kube_ref_of(o);

    ref.subresource = ref.resource->has_status && !ref.resource->status_shared ? "status" : NULL;
    return ref;
}

/* ---- answers ---------------------------------------------------------------------------------
 */

static enum ferry_class class_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return FERRY_DENIED;
    case 404:
        return FERRY_NOT_FOUND;
    case 409:
    case 412:
        return FERRY_CONFLICT;
    case 410: /* the version is too old: read again */
    case 408:
    case 429:
        return FERRY_RETRY;
    default:
        return status >= 500 ? FERRY_RETRY : FERRY_INVALID;
    }
}

int kube_status_error(int status, const char *body, size_t len, const char *what,
                      struct ferry_error *err)
{
    enum ferry_class cls = class_of_status(status);
    api_cleanup_doc yyjson_doc *doc = len > 0 ? yyjson_read(body, len, 0) : NULL;

    wire_error_read(cls, status, yyjson_doc_get_root(doc), err);
    ferry_wrap(err, "%s", what);
    return -(int)cls;
}

/* "patch virtualmachineinstances/status default/web" */
static char *describe(const char *verb, const struct kube_ref *ref)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    ferry_buf_printf(&b, "%s %s", verb, ref->resource->plural);
    if (ref->subresource) {
        ferry_buf_printf(&b, "/%s", ref->subresource);
    }
    if (ref->name) {
        ferry_buf_printf(&b, " %s%s%s", ref->ns ? ref->ns : "", ref->ns ? "/" : "", ref->name);
    }
    return ferry_buf_take(&b);
}

void kube_client_on_warning(struct kube_client *c, void (*warn)(const char *text))
{
    c->warn = warn;
}

/* One exchange; anything but 2xx becomes an error. */
static int call(struct kube_client *c, const struct kube_ref *ref, const char *verb,
                struct http_call *how, struct http_reply *ret, struct ferry_error *err)
{
    ferry_cleanup_free char *what = describe(verb, ref);

    if (!how->timeout_ms) {
        how->timeout_ms = CALL_TIMEOUT_MS;
    }
    how->accept = "application/json";
    bool (*may_write)(void *ctx) = c->may_write;
    if (may_write && !ferry_streq(how->method, "GET") && !may_write(c->fence_ctx)) {
        return ferry_fail(err, FERRY_CANCELLED, "%s: another may act now", what);
    }
    refresh(c);
    if (http_client_call(c->http, how, ret, err) < 0) {
        return ferry_wrap(err, "%s", what);
    }
    if (ret->warning[0] && c->warn) {
        c->warn(ret->warning);
    } else if (ret->warning[0]) {
        ferry_warn("warning from the API server", F_STR("call", what), F_STR("text", ret->warning));
    }
    if (ret->status < 200 || ret->status > 299) {
        return kube_status_error(ret->status, ret->body.data, ret->body.len, what, err);
    }
    return 0;
}

static int decode(const struct kube_ref *ref, const struct http_reply *reply,
                  struct api_object **ret, struct ferry_error *err)
{
    if (!ret) {
        return 0;
    }
    int rc = api_object_parse(ref->resource->kind, reply->body.data ? reply->body.data : "",
                              reply->body.len, ret, err);

    return rc < 0 ? ferry_wrap(err, "answer of the API server for %s", ref->resource->plural) : 0;
}

/* ---- calls -----------------------------------------------------------------------------------
 */

int kube_client_get(struct kube_client *c, struct kube_ref ref, struct api_object **ret,
                    struct ferry_error *err)
{
    ferry_cleanup_free char *path = api_path(ref.resource, ref.ns, ref.name, ref.subresource);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = call(c, &ref, "get", &(struct http_call){.method = "GET", .path = path}, &reply, err);

    return rc < 0 ? rc : decode(&ref, &reply, ret, err);
}

int kube_client_create(struct kube_client *c, struct kube_ref ref, const char *json,
                       struct api_object **ret, struct ferry_error *err)
{
    /* A subresource (binding, eviction) is created under its object's name. */
    ferry_cleanup_free char *path =
        api_path(ref.resource, ref.ns, ref.subresource ? ref.name : NULL, ref.subresource);
    http_cleanup_reply struct http_reply reply = {0};
    int rc = call(
        c, &ref, "create",
        &(struct http_call){.method = "POST", .path = path, .body = json, .body_len = strlen(json)},
        &reply, err);

    return rc < 0 ? rc : decode(&ref, &reply, ret, err);
}

static const char *patch_media_type(enum kube_patch_type type)
{
    switch (type) {
    case KUBE_PATCH_JSON:
        return "application/json-patch+json";
    case KUBE_PATCH_MERGE:
        return "application/merge-patch+json";
    case KUBE_PATCH_APPLY:
        break;
    }
    return "application/apply-patch+yaml";
}

static bool has_test(const char *patch)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(patch, strlen(patch), 0);
    yyjson_arr_iter it = yyjson_arr_iter_with(yyjson_doc_get_root(doc));

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(api_json_str(v, "/op"), "test")) {
            return true;
        }
    }
    return false;
}

/* Whether a JSON patch was refused because a `test` in it does not hold. kube-apiserver then
 * answers 422 and says no more; a result that the kind does not take is 422 as well, but names the
 * object and the field, and must not be tried again. */
static bool guard_failed(const char *body, const struct http_reply *reply)
{
    if (reply->status != 422 || !has_test(body)) {
        return false;
    }
    yyjson_doc *doc =
        reply->body.len > 0 ? yyjson_read(reply->body.data, reply->body.len, 0) : NULL;
    bool about_object = doc && api_json_str(yyjson_doc_get_root(doc), "/details/kind");

    yyjson_doc_free(doc);
    return !about_object;
}

int kube_client_patch(struct kube_client *c, struct kube_ref ref, enum kube_patch_type type,
                      const char *body, struct api_object **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *plain = api_path(ref.resource, ref.ns, ref.name, ref.subresource);
    ferry_cleanup_free char *path = ferry_asprintf(
        "%s%s", plain, type == KUBE_PATCH_APPLY ? "?fieldManager=ferry&force=true" : "");
    http_cleanup_reply struct http_reply reply = {0};
    int rc = call(c, &ref, "patch",
                  &(struct http_call){.method = "PATCH",
                                      .path = path,
                                      .content_type = patch_media_type(type),
                                      .body = body,
                                      .body_len = strlen(body)},
                  &reply, err);

    if (rc == -FERRY_INVALID && type == KUBE_PATCH_JSON && guard_failed(body, &reply)) {
        if (err) {
            err->cls = FERRY_CONFLICT;
        }
        ferry_wrap(err, "the object changed meanwhile");
        return -FERRY_CONFLICT;
    }
    return rc < 0 ? rc : decode(&ref, &reply, ret, err);
}

int kube_retry_conflicts(int (*attempt)(void *ctx, struct ferry_error *err), void *ctx,
                         struct ferry_error *err)
{
    int rc = attempt(ctx, err);

    for (int i = 1; i < CONFLICTS_MAX && rc == -FERRY_CONFLICT; i++) {
        ferry_sleep_ms(CONFLICT_PAUSE_MS << i);
        rc = attempt(ctx, err);
    }
    return rc;
}

int kube_client_delete(struct kube_client *c, struct kube_ref ref,
                       const struct kube_delete_options *options, struct ferry_error *err)
{
    ferry_cleanup_free char *path = api_path(ref.resource, ref.ns, ref.name, ref.subresource);
    ferry_cleanup_buf struct ferry_buf body = {0};
    http_cleanup_reply struct http_reply reply = {0};

    ferry_buf_puts(&body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"");
    if (options && options->has_grace) {
        ferry_buf_printf(&body, ",\"gracePeriodSeconds\":%" PRId64, options->grace_s);
    }
    if (options && options->uid) {
        /* UIDs come from the API server: no character that needs escaping. */
        ferry_buf_printf(&body, ",\"preconditions\":{\"uid\":\"%s\"}", options->uid);
    }
    ferry_buf_puts(&body, "}");
    return call(c, &ref, "delete",
                &(struct http_call){
                    .method = "DELETE", .path = path, .body = body.data, .body_len = body.len},
                &reply, err);
}

int kube_client_bind(struct kube_client *c, const struct api_object *pod, const char *node,
                     struct ferry_error *err)
{
    struct kube_ref ref = kube_ref_of(pod);
    ferry_cleanup_free char *body =
        ferry_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
                       "\"namespace\":\"%s\",\"uid\":\"%s\"},\"target\":{\"apiVersion\":\"v1\","
                       "\"kind\":\"Node\",\"name\":\"%s\"}}",
                       pod->meta->name, pod->meta->namespace_, pod->meta->uid, node);

    ref.subresource = "binding";
    return kube_client_create(c, ref, body, NULL, err);
}

/* ---- list ------------------------------------------------------------------------------------
 */

void kube_list_done(struct kube_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        api_object_unref(l->items[i]);
    }
    free(l->items);
    free(l->resource_version);
    *l = (struct kube_list){0};
}

static char *list_path(const struct kube_ref *ref, const struct kube_list_options *options,
                       const char *next)
{
    ferry_cleanup_free char *plain = api_path(ref->resource, ref->ns, NULL, NULL);
    ferry_cleanup_buf struct ferry_buf b = {0};
    const struct {
        const char *name, *value;
    } parameters[] = {{"labelSelector", options ? options->label_selector : NULL},
                      {"fieldSelector", options ? options->field_selector : NULL},
                      {"continue", next}};

    ferry_buf_printf(&b, "%s?limit=%d", plain, LIST_PAGE);
    for (size_t i = 0; i < FERRY_COUNT(parameters); i++) {
        if (parameters[i].value) {
            ferry_cleanup_free char *value = http_escape(parameters[i].value);

            ferry_buf_printf(&b, "&%s=%s", parameters[i].name, value);
        }
    }
    return ferry_buf_take(&b);
}

static void append_items(const struct api_resource *resource, yyjson_val *items,
                         struct kube_list *l)
{
    yyjson_arr_iter it;
    yyjson_val *item;

    l->items =
        ferry_xrealloc(l->items, l->n + yyjson_arr_size(items) + 1, sizeof(struct api_object *));
    yyjson_arr_iter_init(items, &it);
    while ((item = yyjson_arr_iter_next(&it))) {
        struct ferry_error err = {0};

        if (api_object_from_val(resource->kind, item, &l->items[l->n], &err) < 0) {
            ferry_error("malformed object left out of a list", F_STR("resource", resource->plural),
                        F_STR("name", api_json_str(item, "/metadata/name")), F_ERR(&err));
        } else {
            l->n++;
        }
    }
}

int kube_list_add_page(struct kube_list *l, const struct api_resource *resource, char *text,
                       size_t len, char **ret_next, struct ferry_error *err)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int rc = api_json_parse_around(text, len, "items", &doc, err);

    if (rc < 0) {
        return ferry_wrap(err, "list of %s", resource->plural);
    }
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *version = api_json_str(root, "/metadata/resourceVersion");
    const char *token = api_json_str(root, "/metadata/continue");

    append_items(resource, yyjson_obj_get(root, "items"), l);
    free(l->resource_version);
    l->resource_version = ferry_strdup(version ? version : "0");
    *ret_next = ferry_str_empty(token) ? NULL : ferry_strdup(token);
    return 0;
}

static int list_page(struct kube_client *c, const struct kube_ref *ref, const char *path,
                     struct kube_list *l, char **next, struct ferry_error *err)
{
    http_cleanup_reply struct http_reply reply = {0};
    int rc = call(c, ref, "list",
                  &(struct http_call){.method = "GET", .path = path, .timeout_ms = LIST_TIMEOUT_MS},
                  &reply, err);

    if (rc < 0) {
        return rc;
    }
    ferry_buf_reserve(&reply.body, YYJSON_PADDING_SIZE);
    return kube_list_add_page(l, ref->resource, reply.body.data, reply.body.len, next, err);
}

int kube_client_list(struct kube_client *c, struct kube_ref ref,
                     const struct kube_list_options *options, struct kube_list *ret,
                     struct ferry_error *err)
{
    kube_cleanup_list struct kube_list list = {0};
    ferry_cleanup_free char *token = NULL;

    do {
        ferry_cleanup_free char *path = list_path(&ref, options, token);
        char *next = NULL;
        int rc = list_page(c, &ref, path, &list, &next, err);

        if (rc < 0) {
            return rc;
        }
        free(token);
        token = next;
    } while (token);
    *ret = list;
    list = (struct kube_list){0};
    return 0;
}
