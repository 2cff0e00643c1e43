/* Theory of operation. A watch is a stream that the connection's thread fills: first what is there
 * already (when the client gave no version), then events from the hub, in between bookmarks. It
 * keeps one version, `seen`; whatever the client does not read stays in `out` and holds nobody up.
 * When `seen` has fallen out of the hub's window the client is told 410 and the stream ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "apiserver/access/deny.h"
#include "apiserver/access/token.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/page.h"
#include "apiserver/request/rights.h"
#include "apiserver/request/watch.h"
#include "base/clock.h"

enum {
    DEFAULT_TIMEOUT_S = 1800,
    MAX_TIMEOUT_S = 24 * 3600,
    WAIT_MS = 500,
    OUT_SOFT_MAX = 256 << 10,
};

struct watch {
    struct store *store;
    struct http_peer *node; /* the watcher's certificate when it is a node's, else NULL */
    struct person *person;  /* a watcher whose rights or token may end, else NULL */
    const struct api_resource *resource;
    struct filter filter;
    bool table, bookmarks;
    bool mark_initial; /* a bookmark says when everything that is there was sent */
    enum table_include include;
    const char *send_initial; /* as asked, while the request is read */
    uint64_t seen;
    struct entry_list initial; /* sent first */
    size_t initial_sent;
    int64_t end_ns, bookmark_ns, bookmark_every_ns;
    struct ferry_buf out;
    size_t out_sent;
    bool over; /* nothing follows what is in `out` */
};

/* What is asked again while the watch goes on. */
struct person {
    struct rbac *rbac;
    struct auth_who who;
    struct route route;
    char *selected;
    char *token; /* the header that it came with, or NULL */
};

static void person_free(struct person *p)
{
    if (p) {
        if (p->token) {
            explicit_bzero(p->token, strlen(p->token));
        }
        free(p->token);
        free(p->selected);
        free(p);
    }
}

static struct person *person_new(const struct request *r, const struct filter *filter)
{
    struct person *p = ferry_xcalloc(1, sizeof(*p));

    p->rbac = r->rbac;
    p->who = r->who;
    p->route = r->route;
    p->token =
        http_peer(r->x)->certificate ? NULL : ferry_strdup(http_header(r->x, "Authorization"));
    p->selected = ferry_strdup(api_selector_equal(filter->fields, "metadata.name"));
    return p;
}

static bool may_still(struct store *store, const struct person *p)
{
    cleanup_rbac_view struct rbac_view *v = rbac_view_take(p->rbac);
    struct auth_who who;

    if (p->token && !token_identify(store, p->token, &who)) {
        return false;
    }
    return rights_answer(v, &p->who, &p->route, p->selected, NULL) != AUTH_NO;
}

static void watch_done(void *ctx)
{
    struct watch *w = ctx;

    filter_done(&w->filter);
    entry_list_done(&w->initial);
    ferry_buf_done(&w->out);
    free(w->node);
    person_free(w->person);
    free(w);
}

static void put_table(struct watch *w, const struct entry *e)
{
    api_cleanup_doc yyjson_doc *doc = entry_doc(e);
    struct table_move move = request_move(w->store, w->resource, yyjson_doc_get_root(doc));

    table_begin(&w->out, w->resource, e->version);
    table_row(&w->out, w->resource, yyjson_doc_get_root(doc), e->json, &move, w->include,
              ferry_now_unix_ms(), true);
    table_end(&w->out);
}

static void put_event(struct watch *w, const char *type, const struct entry *e)
{
    ferry_buf_printf(&w->out, "{\"type\":\"%s\",\"object\":", type);
    if (w->table) {
        put_table(w, e);
    } else {
        ferry_buf_append(&w->out, e->json, e->json_len);
    }
    ferry_buf_puts(&w->out, "}\n");
}

static void put_bookmark(struct watch *w, bool initial_end)
{
    ferry_buf_puts(&w->out, "{\"type\":\"BOOKMARK\",\"object\":");
    if (w->table) {
        table_begin(&w->out, w->resource, w->seen);
        table_end(&w->out);
    } else {
        ferry_buf_printf(
            &w->out,
            "{\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\",\"metadata\":"
            "{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null%s}}",
            w->resource->kind_name, w->resource->group, *w->resource->group ? "/" : "",
            w->resource->version, (unsigned long long)w->seen,
            initial_end ? ",\"annotations\":{\"" ANNOTATION_INITIAL_EVENTS_END "\":\"true\"}" : "");
    }
    ferry_buf_puts(&w->out, "}\n");
    w->bookmark_ns = ferry_now_ns() + w->bookmark_every_ns;
}

static void put_expired(struct watch *w)
{
    struct status st;

    status_fail(&st, 410, "too old resource version: %llu (%llu)", (unsigned long long)w->seen,
                (unsigned long long)store_version(w->store));
    ferry_cleanup_free char *json = status_text(&st);
    ferry_buf_printf(&w->out, "{\"type\":\"ERROR\",\"object\":%s}\n", json);
    w->over = true;
}

/* It ceased to match: its last state that did, with the version of the change, as Kubernetes has
 * it. What it became is not for this watcher. */
static void put_left(struct watch *w, const struct hub_event *e)
{
    ferry_buf_puts(&w->out, "{\"type\":\"DELETED\",\"object\":");
    if (w->table) {
        ferry_cleanup_buf struct ferry_buf json = {0};

        entry_put_as_of(e->before, e->now->version, &json);
        cleanup_entry struct entry *left =
            entry_new(w->resource, e->now->version, e->now->ns, e->now->name, json.data, json.len);
        put_table(w, left);
    } else {
        entry_put_as_of(e->before, e->now->version, &w->out);
    }
    ferry_buf_puts(&w->out, "}\n");
}

/* An object that begins or ceases to match comes or goes as far as this watcher is concerned. */
static void put_change(struct watch *w, const struct hub_event *e)
{
    bool now = e->type != HUB_DELETED && filter_matches(&w->filter, e->now);
    bool before = e->before && filter_matches(&w->filter, e->before);

    if (now) {
        put_event(w, before ? "MODIFIED" : "ADDED", e->now);
    } else if (before && e->type == HUB_DELETED) {
        put_event(w, "DELETED", e->now);
    } else if (before) {
        put_left(w, e);
    }
}

static void fill_initial(struct watch *w)
{
    for (; w->initial_sent < w->initial.n && w->out.len < OUT_SOFT_MAX; w->initial_sent++) {
        struct entry *e = w->initial.items[w->initial_sent];

        if (filter_matches(&w->filter, e)) {
            put_event(w, "ADDED", e);
        }
        entry_unref(e);
        w->initial.items[w->initial_sent] = NULL;
    }
}

static void fill(struct watch *w)
{
    cleanup_hub_batch struct hub_batch batch = {0};
    int64_t now = ferry_now_ns();

    if (w->node && deny_check(w->store, w->node)) {
        w->over = true; /* it was removed: what it watches is no longer its business */
        return;
    }
    if (w->initial_sent < w->initial.n) {
        fill_initial(w);
        return;
    }
    if (w->mark_initial) {
        w->mark_initial = false;
        put_bookmark(w, true);
        return;
    }
    if (now >= w->end_ns) {
        if (w->bookmarks) {
            put_bookmark(w, false); /* whoever resumes begins here */
        }
        w->over = true;
        return;
    }
    int64_t left_ms = (w->end_ns - now) / FERRY_NS_PER_MS + 1;
    if (hub_wait(store_hub(w->store), w->resource, w->seen,
                 left_ms < WAIT_MS ? (int)left_ms : WAIT_MS, &batch) < 0) {
        put_expired(w);
        return;
    }
    if (w->person && !may_still(w->store, w->person)) {
        w->over = true; /* the binding was taken away, before what came now */
        return;
    }
    for (size_t i = 0; i < batch.n; i++) {
        put_change(w, &batch.events[i]);
    }
    w->seen = batch.version;
    if (w->bookmarks && ferry_now_ns() >= w->bookmark_ns) {
        put_bookmark(w, false);
    }
}

static ssize_t watch_read(void *ctx, char *buf, size_t max)
{
    struct watch *w = ctx;

    if (w->out_sent == w->out.len) {
        w->out.len = w->out_sent = 0;
        if (!w->over) {
            fill(w);
        }
        if (w->out.len == 0) {
            return w->over ? -1 : 0;
        }
    }
    size_t n = w->out.len - w->out_sent;
    n = n < max ? n : max;
    memcpy(buf, w->out.data + w->out_sent, n);
    w->out_sent += n;
    return (ssize_t)n;
}

static int parse_timeout(struct request *r, int64_t *ret_end_ns)
{
    const char *text = http_query(r->x, "timeoutSeconds");
    long long s = DEFAULT_TIMEOUT_S;

    if (text && *text && ferry_parse_int(text, 0, INT32_MAX, &s, NULL) < 0) {
        return status_fail(&r->st, 400, "timeoutSeconds: must be a number of seconds");
    }
    s = s == 0 ? DEFAULT_TIMEOUT_S : s;
    s = s > MAX_TIMEOUT_S ? MAX_TIMEOUT_S : s;
    *ret_end_ns = ferry_now_ns() + s * FERRY_NS_PER_S;
    return 0;
}

/* Where to begin: a version, or everything that is there. */
static int parse_start(struct request *r, struct watch *w)
{
    const char *text = http_query(r->x, "resourceVersion");
    cleanup_hub_batch struct hub_batch batch = {0};
    long long version = 0;

    if (text && *text && ferry_parse_int(text, 0, INT64_MAX, &version, NULL) < 0) {
        return status_fail(&r->st, 400, "resourceVersion: Invalid value: \"%.100s\"", text);
    }
    if (ferry_streq(w->send_initial, "false") && version == 0) {
        w->seen = store_version(r->store);
        return 0;
    }
    if (version == 0 || ferry_streq(w->send_initial, "true")) {
        if (page_check_version(text, store_version(r->store), &r->st) < 0) {
            return -1;
        }
        w->mark_initial = ferry_streq(w->send_initial, "true") && w->bookmarks;
        store_list(r->store, w->resource, *w->filter.ns ? w->filter.ns : NULL, &w->initial);
        w->seen = w->initial.version;
        return 0;
    }
    w->seen = (uint64_t)version;
    if (hub_wait(store_hub(r->store), w->resource, w->seen, 0, &batch) < 0) {
        return status_fail(&r->st, 410, "too old resource version: %lld (%llu)", version,
                           (unsigned long long)store_version(r->store));
    }
    return 0;
}

int watch_serve(struct request *r)
{
    struct watch *w = ferry_xcalloc(1, sizeof(*w));
    int rc = 0;

    w->store = r->store;
    w->resource = r->route.resource;
    if (r->who.role == AUTH_NODE && http_peer(r->x)->certificate) {
        w->node = ferry_xcalloc(1, sizeof(*w->node));
        *w->node = *http_peer(r->x);
    }
    w->table = request_wants_table(r, &w->include);
    w->bookmarks = request_flag(r, "allowWatchBookmarks");
    w->bookmark_every_ns = r->bookmark_s * FERRY_NS_PER_S;
    w->bookmark_ns = ferry_now_ns() + w->bookmark_every_ns;
    w->send_initial = http_query(r->x, "sendInitialEvents");
    if (w->send_initial && !ferry_streq(http_query(r->x, "resourceVersionMatch"), "NotOlderThan")) {
        rc = status_fail(&r->st, 422,
                         "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                         "resourceVersionMatch to NotOlderThan");
    }
    if (rc == 0) {
        rc =
            filter_parse(w->resource, r->route.ns, r->route.name, http_query(r->x, "labelSelector"),
                         http_query(r->x, "fieldSelector"), &w->filter, &r->st);
    }
    if (rc == 0 && (auth_is_person(&r->who) || !http_peer(r->x)->certificate)) {
        w->person = person_new(r, &w->filter);
    }
    if (rc < 0 || parse_timeout(r, &w->end_ns) < 0 || parse_start(r, w) < 0) {
        watch_done(w);
        return -1;
    }
    r->code = 200;
    http_answer_stream(r->x, 200, "application/json",
                       &(struct http_stream){.read = watch_read, .done = watch_done, .ctx = w});
    return 0;
}
