/* Theory of operation. Each call runs on its connection's thread from here: who is it (the verified
 * certificate), what is asked (route), is it allowed (auth), then the handler of the verb. Every
 * refusal leaves as a Kubernetes Status; every refused and every changing call leaves an audit
 * line.
 */
#include "apiserver/serve/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/access/auth.h"
#include "apiserver/access/deny.h"
#include "apiserver/access/token.h"
#include "apiserver/action/bind.h"
#include "apiserver/action/eviction.h"
#include "apiserver/action/join.h"
#include "apiserver/action/node_proxy.h"
#include "apiserver/action/proxy_plan.h"
#include "apiserver/action/self_review.h"
#include "apiserver/action/subresource.h"
#include "apiserver/collect/collector.h"
#include "apiserver/kinds/discovery.h"
#include "apiserver/request/node_guard.h"
#include "apiserver/request/rbac_keep.h"
#include "apiserver/request/read.h"
#include "apiserver/request/remove.h"
#include "apiserver/request/request.h"
#include "apiserver/request/rights.h"
#include "apiserver/request/watch.h"
#include "apiserver/request/write.h"
#include "apiserver/serve/guesses.h"
#include "apiserver/serve/metrics.h"
#include "apiserver/serve/terms.h"
#include "apiserver/store/backup.h"
#include "apiserver/store/store.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server.h"

enum { MAX_LISTENERS = 32, MAX_CONNECTIONS = 2048 };

#define BODY_MEMORY (UINT64_C(256) << 20)

struct apiserver {
    struct store *store;
    struct rbac *rbac;
    struct audit *audit; /* or NULL */
    struct collector *collector;
    struct node_proxy *proxy;
    struct node_budgets *budgets;
    char *cert_pem, *key_pem, *ca_pem;
    const struct pki_ca *ca;
    int bookmark_s;
    struct doors_limits doors;
    struct body_budget *budget;
    struct guesses *guesses;
    struct http_server *listeners[MAX_LISTENERS];
    size_t n_listeners;
};

/* ---- calls on objects --------------------------------------------------------------------------
 */

static void audit(const struct request *r, const char *method)
{
    const struct route *route = &r->route;

    ferry_info("audit", F_STR("user", r->who.user), F_STR("from", http_peer(r->x)->address),
               F_STR("verb", route->resource ? route_verb_name(route->verb) : method),
               F_STR("resource", route->resource ? route->resource->plural : http_path(r->x)),
               F_STR("subresource", route->subresource), F_STR("namespace", route->ns),
               F_STR("name", route->name), F_INT("code", r->code),
               F_STR("why", r->code >= 400 ? r->st.message : ""));
}

static int check_allowed(struct request *r)
{
    struct route asked = r->route;

    /* The name of a new object is in the body; whether it fits is seen when it is read. */
    if (asked.verb == ROUTE_CREATE && !*asked.name) {
        memcpy(asked.name, r->who.node, sizeof(asked.name));
    }
    r->auth = rights_of(r, &asked);
    if (r->auth == AUTH_NO) {
        r->auth = rights_of(r, &r->route);
    }
    return r->auth != AUTH_NO ? 0 : rights_refuse_route(r);
}

static int dispatch(struct request *r)
{
    switch (r->route.verb) {
    case ROUTE_GET:
        return read_get(r);
    case ROUTE_LIST:
        return read_list(r);
    case ROUTE_WATCH:
        return watch_serve(r);
    case ROUTE_CREATE:
        if (ferry_streq(r->route.subresource, "eviction")) {
            return eviction_serve(r);
        }
        return *r->route.subresource ? bind_serve(r) : write_create(r);
    case ROUTE_UPDATE:
        return write_update(r);
    case ROUTE_PATCH:
        return write_patch(r);
    case ROUTE_DELETE:
        return remove_serve(r);
    case ROUTE_DELETE_COLLECTION:
        return remove_serve_collection(r);
    case ROUTE_VERB_COUNT:
        break;
    }
    return status_fail(&r->st, 405, "unknown verb");
}

static int serve_object(struct request *r, const struct apiserver *s)
{
    bool watch = request_flag(r, "watch");

    if (route_parse(http_method(r->x), http_path(r->x), watch, &r->route, &r->st) < 0 ||
        check_allowed(r) < 0 || node_guard_admit(r, s->budgets) < 0) {
        return -1;
    }
    return dispatch(r);
}

/* What became of a ClusterRole others may have gathered. It holds already, and is shown from now
 * on. */
static void follow_up(struct request *r)
{
    struct ferry_error err;

    if (r->route.resource && ferry_streq(r->route.resource->plural, "clusterroles") &&
        !route_verb_reads(r->route.verb) && r->code < 300 &&
        rbac_keep_aggregates(r->store, r->rbac, &err) < 0) {
        ferry_warn("cannot write what ClusterRoles gather", F_ERR(&err));
    }
}

/* ---- everything else ---------------------------------------------------------------------------
 */

/* A path that is no object: the roles of the table may, and whom a binding lets. */
static int check_path(struct request *r, const char *path)
{
    const struct rbac_ask ask = {.verb = "get", .path = path};

    return r->who.role == AUTH_PERSON || r->who.role == AUTH_ANONYMOUS ? rights_check(r, &ask) : 0;
}

static int serve_discovery(struct request *r)
{
    ferry_cleanup_free char *json = NULL;

    if (!ferry_streq(http_path(r->x), "/version") && check_path(r, http_path(r->x)) < 0) {
        return -1;
    }
    json = discovery_answer(http_path(r->x));
    if (!json) {
        return status_fail(&r->st, 404, "the server could not find the requested resource");
    }
    if (!ferry_streq(http_method(r->x), "GET")) {
        return status_fail(&r->st, 405, "the server does not allow this method here");
    }
    r->code = 200;
    http_answer_json(r->x, 200, json);
    return 0;
}

/* All objects in one text, secrets too: for `ferry-apiserver backup`. */
static int serve_backup(struct request *r)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (!rights_allow(r, &(struct rbac_ask){.verb = "get", .path = http_path(r->x)})) {
        return status_fail(&r->st, 403, "forbidden: User \"%s\" may not take a backup",
                           r->who.user);
    }
    backup_objects(r->store, &b);
    r->code = 200;
    http_answer(r->x, 200, "application/x-ndjson", b.data, b.len);
    return 0;
}

/* The nodes whose certificates are refused, for their peers' relays. */
static int serve_denied(struct request *r)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (check_path(r, http_path(r->x)) < 0) {
        return -1;
    }
    deny_list(r->store, &b);
    r->code = 200;
    http_answer(r->x, 200, "application/json", b.data, b.len);
    return 0;
}

static int serve_metrics(struct request *r)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (check_path(r, http_path(r->x)) < 0) {
        return -1;
    }
    apiserver_metrics_write(r->store, &b);
    r->code = 200;
    http_answer(r->x, 200, "text/plain; version=0.0.4", b.data, b.len);
    return 0;
}

static enum metrics_kind kind_of(const struct request *r)
{
    if (!r->route.resource) {
        return METRICS_OTHER;
    }
    return r->route.verb == ROUTE_WATCH      ? METRICS_WATCH
           : route_verb_reads(r->route.verb) ? METRICS_READ
                                             : METRICS_WRITE;
}

static bool is_health(const char *path)
{
    return ferry_streq(path, "/healthz") || ferry_streq(path, "/readyz") ||
           ferry_streq(path, "/livez");
}

/* What a binding to system:unauthenticated opens to who shows nothing: reading. Whoever shows
 * something that is not good is told so. */
static bool is_open(struct request *r)
{
    const char *path = http_path(r->x);
    struct route route;
    struct status st;

    if (r->denied || *http_peer(r->x)->tls_error || http_header(r->x, "Authorization") ||
        !ferry_streq(http_method(r->x), "GET")) {
        return false;
    }
    if (!route_is_object_path(path)) {
        return rights_allow(r, &(struct rbac_ask){.verb = "get", .path = path});
    }
    return route_parse("GET", path, request_flag(r, "watch"), &route, &st) == 0 &&
           rights_of(r, &route) == AUTH_YES;
}

/* A role is not needed to learn that one has none. */
static int check_known(struct request *r)
{
    const struct http_peer *peer = http_peer(r->x);

    if (r->who.role == AUTH_ANONYMOUS && !is_open(r)) {
        if (r->denied) {
            return status_fail(
                &r->st, 401, "Unauthorized: the node of this certificate was removed: join again");
        }
        return status_fail(&r->st, 401, "Unauthorized: %s%s",
                           http_header(r->x, "Authorization") ? "the token is not accepted"
                           : *peer->tls_error ? "the client certificate is not accepted: "
                                              : "no client certificate",
                           peer->tls_error);
    }
    if (http_header(r->x, "Impersonate-User") || http_header(r->x, "Impersonate-Group") ||
        http_header(r->x, "Impersonate-Uid")) {
        /* Who asks for fewer rights must not get more. */
        return status_fail(&r->st, 403, "forbidden: impersonation is not available at this API");
    }
    if (r->who.role == AUTH_NOBODY && !self_review_is_path(http_path(r->x))) {
        return status_fail(&r->st, 403, "forbidden: User \"%s\" has no role at this API",
                           r->who.user);
    }
    return 0;
}

/* By certificate, else by token; the certificates of nodes that were removed are no more. */
static void identify(struct request *r)
{
    static const struct auth_who stranger = {.role = AUTH_ANONYMOUS, .user = "system:anonymous"};
    const struct http_peer *peer = http_peer(r->x);

    auth_identify(peer, &r->who);
    if (peer->certificate && deny_check(r->store, peer)) {
        r->who = stranger;
        r->denied = true;
    } else if (!peer->certificate) {
        token_identify(r->store, http_header(r->x, "Authorization"), &r->who);
        /* A token that speaks for a node names no generation. */
        if (r->who.role == AUTH_NODE && deny_check_node(r->store, r->who.node, "", 0)) {
            r->who = stranger;
            r->denied = true;
        }
    }
}

/* Who has shown too many tokens that were not good is not listened to for a while. */
static int meet(struct request *r, const struct apiserver *s)
{
    const struct http_peer *peer = http_peer(r->x);
    bool token = !peer->certificate && http_header(r->x, "Authorization");
    int wait_s = token ? guesses_wait_s(s->guesses, peer->address, ferry_now_ns()) : 0;
    char text[16];

    if (wait_s > 0) {
        r->who = (struct auth_who){.role = AUTH_ANONYMOUS, .user = "system:anonymous"};
        snprintf(text, sizeof(text), "%d", wait_s);
        http_add_header(r->x, "Retry-After", text);
        return status_fail(&r->st, 429, "too many tokens from %s were not good", peer->address);
    }
    identify(r);
    if (token && r->who.role != AUTH_ANONYMOUS) {
        http_vouch(r->x);
    } else if (r->denied) {
        http_disown(r->x);
    }
    return 0;
}

/* What can be said of a request that has a body before that is read. */
static int check_before_body(struct request *r, const struct apiserver *s)
{
    const char *path = http_path(r->x);

    if (is_health(path) || ferry_streq(path, "/version")) {
        return status_fail(&r->st, 413, "no body is taken here");
    }
    if (s->ca && join_is_path(path)) {
        return join_check(r);
    }
    if (check_known(r) < 0) {
        return -1;
    }
    if (self_review_is_path(path)) {
        return 0;
    }
    if (s->proxy && proxy_is_path(path)) {
        return node_proxy_check(r);
    }
    if (subresource_is_path(path)) {
        return subresource_check(r);
    }
    if (route_is_object_path(path) && !discovery_is_virt_version(path)) {
        return route_parse(http_method(r->x), path, request_flag(r, "watch"), &r->route, &r->st) < 0
                   ? -1
                   : check_allowed(r);
    }
    return 0;
}

static int serve(struct request *r, const struct apiserver *s)
{
    const char *path = http_path(r->x);

    if (is_health(path)) {
        r->code = 200;
        http_answer(r->x, 200, "text/plain", "ok", 2);
        return 0;
    }
    if (ferry_streq(path, "/version")) {
        return serve_discovery(r);
    }
    if (s->ca && join_is_path(path)) {
        return join_serve(r, s->ca);
    }
    if (check_known(r) < 0) {
        return -1;
    }
    if (self_review_is_path(path)) {
        return self_review_serve(r);
    }
    if (ferry_streq(path, "/ferry/v1/backup")) {
        return serve_backup(r);
    }
    if (ferry_streq(path, "/ferry/v1/denied")) {
        return serve_denied(r);
    }
    if (ferry_streq(path, "/metrics")) {
        return serve_metrics(r);
    }
    if (s->proxy && proxy_is_path(path)) {
        return node_proxy_serve(r, s->proxy);
    }
    if (subresource_is_path(path)) {
        return subresource_serve(r, s->proxy);
    }
    return route_is_object_path(path) && !discovery_is_virt_version(path) ? serve_object(r, s)
                                                                          : serve_discovery(r);
}

/* Answers what went wrong, and accounts for it. */
static void conclude(struct request *r, const struct apiserver *s, int rc, int64_t begin)
{
    const struct http_peer *peer = http_peer(r->x);
    const char *method = http_method(r->x);

    if (rc < 0) {
        request_answer_status(r, &r->st);
    }
    follow_up(r);
    rights_done(r);
    if (r->code == 401 && !peer->certificate && http_header(r->x, "Authorization")) {
        guesses_note(s->guesses, peer->address, begin);
    }
    apiserver_metrics_count(kind_of(r), r->code, ferry_now_ns() - begin);
    bool secrets = r->route.resource && r->route.resource->kind == API_KIND_SECRET;

    if (r->code == 401 || r->code == 403 || ferry_streq(r->route.subresource, "proxy") || secrets ||
        (!ferry_streq(method, "GET") && !ferry_streq(method, "HEAD"))) {
        audit(r, method);
    }
    if (s->audit) {
        audit_end(s->audit, r, ferry_now_unix_ms() - (ferry_now_ns() - begin) / FERRY_NS_PER_MS);
    }
}

static void handle(struct http_exchange *x, void *ctx)
{
    const struct apiserver *s = ctx;
    struct request r = {.x = x, .store = s->store, .rbac = s->rbac, .bookmark_s = s->bookmark_s};
    int64_t begin = ferry_now_ns();
    int rc = meet(&r, s);

    if (s->audit) {
        audit_begin(s->audit, &r);
    }
    conclude(&r, s, rc < 0 ? rc : serve(&r, s), begin);
}

/* The same is asked again when the body is there: rights may have changed meanwhile. */
static bool admit(struct http_exchange *x, struct http_terms *terms, void *ctx)
{
    const struct apiserver *s = ctx;
    struct request r = {.x = x, .store = s->store, .rbac = s->rbac};
    int64_t begin = ferry_now_ns();

    if (meet(&r, s) < 0 || check_before_body(&r, s) < 0) {
        conclude(&r, s, -1, begin);
        return false;
    }
    rights_done(&r);
    *terms = terms_of(r.who.role, s->ca && join_is_path(http_path(x)));
    return true;
}

static void refuse(struct http_exchange *x, int code, const struct ferry_error *err)
{
    struct status st;

    status_fail(&st, code, "%s", err->msg);
    ferry_cleanup_free char *json = status_text(&st);
    http_answer_json(x, code, json);
}

/* ---- life --------------------------------------------------------------------------------------
 */

static int make_namespaces(struct store *store, struct ferry_error *err)
{
    static const char *const names[] = {"default", "kube-system", "kube-node-lease"};

    for (size_t i = 0; i < FERRY_COUNT(names); i++) {
        int rc = write_ensure(store, api_resource_find("", "v1", "namespaces"), names[i], err);

        if (rc < 0) {
            return ferry_wrap(err, "making namespace %s", names[i]);
        }
    }
    return 0;
}

int apiserver_start(const struct apiserver_config *cfg, struct apiserver **ret,
                    struct ferry_error *err)
{
    struct apiserver *s = ferry_xcalloc(1, sizeof(*s));
    int rc = store_open(cfg->database, &s->store, err);

    if (rc == 0) {
        s->rbac = rbac_new(s->store);
        rc = make_namespaces(s->store, err);
    }
    if (rc == 0 && cfg->audit) {
        rc = audit_open(cfg->audit, &s->audit, err);
    }
    rc = rc < 0 ? rc : rbac_keep_policies(s->store, err);
    rc = rc < 0 ? rc : rbac_keep_aggregates(s->store, s->rbac, err);
    if (rc < 0) {
        apiserver_stop(s);
        return rc;
    }
    s->cert_pem = ferry_strdup(cfg->cert_pem);
    s->key_pem = ferry_strdup(cfg->key_pem);
    s->ca_pem = ferry_strdup(cfg->ca_pem);
    s->ca = cfg->ca;
    s->bookmark_s = cfg->bookmark_s;
    s->budgets = node_guard_budgets_new();
    s->doors = cfg->doors;
    s->budget = body_budget_new(cfg->body_memory ? cfg->body_memory : BODY_MEMORY);
    s->guesses = guesses_new();
    s->collector = collector_start(s->store);
    s->proxy = s->ca ? node_proxy_new(s->ca) : NULL;
    *ret = s;
    return 0;
}

int apiserver_listen(struct apiserver *s, int listen_fd, const char *name, struct ferry_error *err)
{
    if (s->n_listeners == MAX_LISTENERS) {
        ferry_closep(&listen_fd);
        return ferry_fail(err, FERRY_INVALID, "more than %d listeners", MAX_LISTENERS);
    }
    int rc = http_server_start(&(struct http_server_config){.name = name,
                                                            .listen_fd = listen_fd,
                                                            .cert_pem = s->cert_pem,
                                                            .key_pem = s->key_pem,
                                                            .ca_pem = s->ca_pem,
                                                            .max_body = TERMS_BODY_MAX,
                                                            .doors = s->doors,
                                                            .budget = s->budget,
                                                            .admit = admit,
                                                            .max_connections = MAX_CONNECTIONS,
                                                            .handle = handle,
                                                            .refuse = refuse,
                                                            .ctx = s},
                               &s->listeners[s->n_listeners], err);
    s->n_listeners += rc == 0;
    return rc;
}

int apiserver_renew(struct apiserver *s, const char *cert_pem, const char *key_pem,
                    struct ferry_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < s->n_listeners && rc == 0; i++) {
        rc = http_server_renew(s->listeners[i], cert_pem, key_pem, err);
    }
    return rc;
}

void apiserver_stop(struct apiserver *s)
{
    if (!s) {
        return;
    }
    for (size_t i = 0; i < s->n_listeners; i++) {
        http_server_stop(s->listeners[i]);
    }
    node_proxy_free(s->proxy);
    collector_stop(s->collector);
    node_guard_budgets_free(s->budgets);
    rbac_free(s->rbac);
    audit_close(s->audit);
    store_close(s->store);
    body_budget_free(s->budget);
    guesses_free(s->guesses);
    if (s->key_pem) {
        explicit_bzero(s->key_pem, strlen(s->key_pem));
    }
    free(s->cert_pem);
    free(s->key_pem);
    free(s->ca_pem);
    free(s);
}
