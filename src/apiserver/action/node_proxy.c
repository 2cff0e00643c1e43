/* Theory of operation.
 *
 * libcurl pushes what comes, libmicrohttpd pulls what goes: between them are a thread for each call
 * and a socket pair, whose buffer is all that is ever held of an answer. A caller that reads slowly
 * slows the node down; one that leaves makes the thread's next send fail; a node that breaks off
 * makes the caller's connection break off, because a short answer must not look like a whole one.
 *
 * The node is known by its name in its certificate, wherever its Node object says it is, and gets
 * nothing before that was seen. The certificate shown to it is made when first needed and anew at
 * two thirds of its life. */
#include "apiserver/action/node_proxy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "api/json.h"
#include "apiserver/action/proxy_plan.h"
#include "apiserver/request/rights.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"

enum {
    CALLS_MAX = 64,      /* at once */
    HEAD_TIMEOUT_S = 40, /* a check dials other nodes before it answers */
    IDLE_TIMEOUT_MS = 60000,
    READ_WAIT_MS = 500,
    TYPE_MAX = 128,
    POST_REPLY_MAX = 1 << 20,
    CERTIFICATE_LIFE_S = 30 * 86400
};

struct node_proxy {
    const struct pki_ca *ca;
    atomic_uint calls;
    pthread_mutex_t lock; /* guards the rest */
    char *cert_pem, *key_pem;
    int64_t renew_unix_ms;
};

/* One call. Two hold it: the thread that reads from the node, and the connection. */
struct passage {
    struct node_proxy *proxy;
    struct http_client *client;
    char *path, *node;
    int from_node, to_caller; /* the pair: written by the thread, read by the connection */
    pthread_t thread;
    atomic_bool leave;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t told;
    bool head, over, broken;
    int status;
    char type[TYPE_MAX];
    struct ferry_buf error_body; /* of an answer that is not 200; complete when `over` */
    struct ferry_error err;
};

struct node_proxy *node_proxy_new(const struct pki_ca *ca)
{
    struct node_proxy *p = ferry_xcalloc(1, sizeof(*p));

    p->ca = ca;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void node_proxy_free(struct node_proxy *p)
{
    if (p) {
        free(p->cert_pem);
        pki_key_free(p->key_pem);
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

/* ---- the node's side ---------------------------------------------------------------------------
 */

static int renew(struct node_proxy *p, struct ferry_error *err)
{
    char *cert = NULL, *key = NULL;
    int64_t now = ferry_now_unix_ms();

    if (p->cert_pem && now < p->renew_unix_ms) {
        return 0;
    }
    int rc = pki_issue(p->ca,
                       &(struct pki_leaf){.common_name = "system:ferry-apiserver",
                                          .client = true,
                                          .lifetime_s = CERTIFICATE_LIFE_S},
                       &cert, &key, err);
    if (rc == 0) {
        free(p->cert_pem);
        pki_key_free(p->key_pem);
        p->cert_pem = cert;
        p->key_pem = key;
        p->renew_unix_ms = now + INT64_C(1000) * CERTIFICATE_LIFE_S / 3 * 2;
    }
    return rc;
}

static int new_client(struct node_proxy *p, const char *node, const char *dial,
                      struct http_client **ret, struct ferry_error *err)
{
    const char *port = strrchr(dial, ':');
    ferry_cleanup_free char *url = ferry_asprintf("https://%s%s", node, port);

    pthread_mutex_lock(&p->lock);
    int rc = renew(p, err);
    if (rc == 0) {
        rc = http_client_new(&(struct http_client_config){.base_url = url,
                                                          .connect_to = dial,
                                                          .ca_pem = pki_ca_pem(p->ca),
                                                          .cert_pem = p->cert_pem,
                                                          .key_pem = p->key_pem},
                             ret, err);
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static void on_head(void *ctx, int status, const char *content_type)
{
    struct passage *q = ctx;

    pthread_mutex_lock(&q->lock);
    q->status = status;
    snprintf(q->type, sizeof(q->type), "%s", content_type);
    q->head = true;
    pthread_cond_broadcast(&q->told);
    pthread_mutex_unlock(&q->lock);
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    struct passage *q = ctx;

    while (n > 0) {
        ssize_t sent = send(q->from_node, data, n, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false; /* the caller left, or has not read for long */
        }
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool must_stop(void *ctx)
{
    struct passage *q = ctx;

    return atomic_load(&q->leave);
}

static void *fetch(void *ctx)
{
    struct passage *q = ctx;
    ferry_cleanup_buf struct ferry_buf body = {0};
    struct ferry_error err = {0};
    int status = 0;
    int rc = http_client_stream(q->client,
                                &(struct http_stream_call){.path = q->path,
                                                           .idle_ms = IDLE_TIMEOUT_MS,
                                                           .on_head = on_head,
                                                           .on_data = on_data,
                                                           .stop = must_stop,
                                                           .ctx = q},
                                &status, &body, &err);

    pthread_mutex_lock(&q->lock);
    q->over = true;
    q->broken = rc < 0;
    q->err = err;
    q->error_body = body;
    body = (struct ferry_buf){0};
    pthread_cond_broadcast(&q->told);
    pthread_mutex_unlock(&q->lock);
    shutdown(q->from_node, SHUT_WR);
    return NULL;
}

/* ---- the caller's side -------------------------------------------------------------------------
 */

static ssize_t passage_read(void *ctx, char *buf, size_t max)
{
    struct passage *q = ctx;
    struct pollfd pfd = {.fd = q->to_caller, .events = POLLIN};

    if (poll(&pfd, 1, READ_WAIT_MS) <= 0) {
        return 0;
    }
    ssize_t n = recv(q->to_caller, buf, max, 0);
    if (n > 0) {
        return n;
    }
    pthread_mutex_lock(&q->lock);
    bool broken = q->broken;
    pthread_mutex_unlock(&q->lock);
    if (broken) {
        ferry_warn("answer of a node's API ended early", F_STR("node", q->node), F_ERR(&q->err));
    }
    return broken ? -2 : -1;
}

static void passage_done(void *ctx)
{
    struct passage *q = ctx;

    atomic_store(&q->leave, true);
    shutdown(q->to_caller, SHUT_RDWR);
    pthread_join(q->thread, NULL);
    atomic_fetch_sub(&q->proxy->calls, 1);
    http_client_free(q->client);
    pthread_cond_destroy(&q->told);
    pthread_mutex_destroy(&q->lock);
    ferry_closep(&q->from_node);
    ferry_closep(&q->to_caller);
    ferry_buf_done(&q->error_body);
    free(q->path);
    free(q->node);
    free(q);
}

static int start(struct passage *q, struct ferry_error *err)
{
    struct timeval patience = {.tv_sec = IDLE_TIMEOUT_MS / 1000};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return ferry_fail_errno(err, errno, "making a socket pair");
    }
    q->from_node = pair[0];
    q->to_caller = pair[1];
    (void)setsockopt(q->from_node, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->told, NULL);
    int rc = pthread_create(&q->thread, NULL, fetch, q);
    if (rc != 0) {
        ferry_closep(&q->from_node);
        ferry_closep(&q->to_caller);
        return ferry_fail_errno(err, rc, "starting a thread");
    }
    return 0;
}

/* Waits for the head of the answer; for all of it when it is an error. */
static int await_head(struct passage *q, struct status *st)
{
    int64_t deadline = ferry_now_ns() + HEAD_TIMEOUT_S * FERRY_NS_PER_S;
    bool in_time = true;

    pthread_mutex_lock(&q->lock);
    while (in_time && !q->over && !(q->head && q->status == 200)) {
        in_time = ferry_cond_wait(&q->told, &q->lock, deadline);
    }
    bool good = q->head && (q->status == 200 || (q->over && !q->broken));
    struct ferry_error err = q->err;
    bool over = q->over;
    pthread_mutex_unlock(&q->lock);
    if (good) {
        return 0;
    }
    if (!over) {
        return status_fail(st, 504, "node \"%s\" gave no answer within %d s", q->node,
                           HEAD_TIMEOUT_S);
    }
    return status_fail(st, err.cls == FERRY_DENIED ? 502 : 503, "node \"%s\": %s", q->node,
                       err.msg);
}

static int pass(struct request *r, struct passage *q)
{
    if (await_head(q, &r->st) < 0) {
        passage_done(q);
        return -1;
    }
    r->code = q->status;
    const char *type = *q->type ? q->type : NULL;
    if (q->status == 200) {
        http_answer_stream(r->x, 200, type, &(struct http_stream){passage_read, passage_done, q});
        return 0;
    }
    http_answer(r->x, q->status, type, q->error_body.data ? q->error_body.data : "",
                q->error_body.len);
    passage_done(q);
    return 0;
}

static int open_passage(struct request *r, struct node_proxy *p, const struct proxy_call *c,
                        const char *dial)
{
    struct passage *q = ferry_xcalloc(1, sizeof(*q));
    ferry_cleanup_free char *path = proxy_encode(c->rest), *query = http_query_text(r->x);
    struct ferry_error err;

    q->proxy = p;
    q->node = ferry_strdup(c->node);
    q->path = ferry_asprintf("%s%s", path, query);
    int rc = new_client(p, c->node, dial, &q->client, &err);
    rc = rc < 0 ? rc : start(q, &err);
    if (rc < 0) {
        atomic_fetch_sub(&p->calls, 1);
        http_client_free(q->client);
        free(q->path);
        free(q->node);
        free(q);
        return status_of_error(&r->st, &err);
    }
    return pass(r, q);
}

/* A call with a body: small, and so is its answer. Gives the caller's place back. */
static int send_post(struct request *r, struct node_proxy *p, const struct proxy_call *c,
                     const char *dial, const struct http_call *what, struct http_reply *ret)
{
    struct http_client *client = NULL;
    struct ferry_error err;
    int rc = new_client(p, c->node, dial, &client, &err);

    if (rc == 0) {
        struct http_call call = *what;

        call.method = "POST";
        call.timeout_ms = HEAD_TIMEOUT_S * 1000;
        call.max_reply = POST_REPLY_MAX;
        rc = http_client_call(client, &call, ret, &err);
        http_client_free(client);
    }
    atomic_fetch_sub(&p->calls, 1);
    return rc < 0 ? status_fail(&r->st, err.cls == FERRY_DENIED ? 502 : 503, "node \"%s\": %s",
                                c->node, err.msg)
                  : 0;
}

static int post(struct request *r, struct node_proxy *p, const struct proxy_call *c,
                const char *dial)
{
    ferry_cleanup_free char *encoded = proxy_encode(c->rest), *query = http_query_text(r->x);
    ferry_cleanup_free char *path = ferry_asprintf("%s%s", encoded, query);
    http_cleanup_reply struct http_reply reply = {0};
    size_t len;
    const char *body = http_body(r->x, &len);

    if (send_post(r, p, c, dial,
                  &(struct http_call){.path = path,
                                      .content_type = http_header(r->x, "Content-Type"),
                                      .body = body,
                                      .body_len = len},
                  &reply) < 0) {
        return -1;
    }
    r->code = reply.status;
    http_answer(r->x, reply.status, "application/json", reply.body.data ? reply.body.data : "",
                reply.body.len);
    return 0;
}

static int find_node(struct request *r, const struct proxy_call *c, char dial[PROXY_DIAL_MAX])
{
    const struct api_resource *nodes = api_resource_of_kind(API_KIND_NODE);
    cleanup_entry struct entry *e = store_get(r->store, nodes, "", c->node);

    if (!e) {
        return status_not_found(&r->st, nodes, c->node);
    }
    yyjson_doc *doc = entry_doc(e);
    int rc = proxy_dial(yyjson_doc_get_root(doc), c->node, dial, &r->st);
    yyjson_doc_free(doc);
    return rc;
}

/* A place among the calls; whoever sends gives it back. */
static int take_place(struct request *r, struct node_proxy *p)
{
    if (atomic_fetch_add(&p->calls, 1) < CALLS_MAX) {
        return 0;
    }
    atomic_fetch_sub(&p->calls, 1);
    return status_fail(&r->st, 429, "nodes/proxy: %d calls are under way already", CALLS_MAX);
}

int node_proxy_tell(struct request *r, struct node_proxy *p, const char *node, const char *rest)
{
    http_cleanup_reply struct http_reply reply = {0};
    struct proxy_call c = {0};
    char dial[PROXY_DIAL_MAX];

    snprintf(c.node, sizeof(c.node), "%s", node);
    ferry_cleanup_free char *path = proxy_encode(rest);
    if (find_node(r, &c, dial) < 0 || take_place(r, p) < 0 ||
        send_post(r, p, &c, dial, &(struct http_call){.path = path}, &reply) < 0) {
        return -1;
    }
    if (reply.status == 200) {
        return 0;
    }
    api_cleanup_doc yyjson_doc *doc =
        yyjson_read(reply.body.data ? reply.body.data : "", reply.body.len, 0);
    const char *message = api_json_str(yyjson_doc_get_root(doc), "/message");
    return status_fail(&r->st, reply.status, "node \"%s\": %.300s", c.node,
                       message ? message : "no reason given");
}

/* The migration of that UID, while it is there. */
static bool find_move(struct request *r, struct proxy_right *right)
{
    cleanup_entry_list struct entry_list list = {0};

    store_list(r->store, api_resource_of_kind(API_KIND_MIGRATION), NULL, &list);
    for (size_t i = 0; i < list.n; i++) {
        if (ferry_span_is(entry_uid(list.items[i]), right->uid)) {
            snprintf(right->ns, sizeof(right->ns), "%s", list.items[i]->ns);
            snprintf(right->name, sizeof(right->name), "%s", list.items[i]->name);
            return true;
        }
    }
    return false;
}

/* By bindings: all of a node's API, or what a right to a guest comes with. */
static bool may_ask(struct request *r, const struct proxy_call *c, bool posts)
{
    struct proxy_right right;

    if (rights_allow(r, &(struct rbac_ask){.verb = posts ? "create" : "get",
                                           .group = "",
                                           .resource = "nodes",
                                           .subresource = "proxy",
                                           .ns = "",
                                           .name = c->node})) {
        return true;
    }
    if (!auth_is_person(&r->who) || !proxy_right_of(c, posts, &right)) {
        return false;
    }
    /* Of a move that is no more only those are told who see all moves. */
    if (*right.uid && !find_move(r, &right)) {
        *right.ns = *right.name = '\0';
    }
    return rights_allow(r, &(struct rbac_ask){.verb = right.verb,
                                              .group = right.group,
                                              .resource = right.resource,
                                              .subresource = right.subresource,
                                              .ns = right.ns,
                                              .name = right.name});
}

static int check(struct request *r, struct proxy_call *ret)
{
    bool posts = ferry_streq(http_method(r->x), "POST");

    if (proxy_parse(http_path(r->x), ret, &r->st) < 0) {
        return -1;
    }
    r->route = (struct route){.resource = api_resource_find("", "v1", "nodes"),
                              .verb = posts ? ROUTE_CREATE : ROUTE_GET,
                              .subresource = "proxy"};
    snprintf(r->route.name, sizeof(r->route.name), "%s", ret->node);
    if (!proxy_allowed(&r->who, ret, posts) && !may_ask(r, ret, posts)) {
        return status_forbidden(&r->st, r->route.resource, ret->node,
                                "User \"%s\" cannot %s \"%.200s\" of this node", r->who.user,
                                posts ? "create" : "get", ret->rest);
    }
    if (!posts && !ferry_streq(http_method(r->x), "GET")) {
        return status_fail(&r->st, 405, "nodes/proxy: a node answers GET and POST alone");
    }
    return 0;
}

int node_proxy_check(struct request *r)
{
    struct proxy_call c;

    return check(r, &c);
}

int node_proxy_serve(struct request *r, struct node_proxy *p)
{
    char dial[PROXY_DIAL_MAX];
    struct proxy_call c;

    if (check(r, &c) < 0) {
        return -1;
    }
    bool posts = r->route.verb == ROUTE_CREATE;
    if (find_node(r, &c, dial) < 0 || take_place(r, p) < 0) {
        return -1;
    }
    return posts ? post(r, p, &c, dial) : open_passage(r, p, &c, dial);
}
