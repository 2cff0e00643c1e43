/* Theory of operation.
 *
 * The thread runs `follow` in a loop: list when there is no resourceVersion to resume from, then
 * watch from it until the stream ends. A stream that ends by itself or breaks is resumed from the
 * last version seen (events and bookmarks carry it); 410, as status or as an ERROR event, clears
 * the version, so that the next round lists. A round that delivered nothing and failed doubles the
 * pause before the next one; so does a list whose version was too old by the time it was watched
 * from, because a server that is that busy is not helped by lists.
 *
 * A list is applied as the difference to the cache, so consumers see deltas only: whatever
 * happened while nobody watched shows up as added, changed or gone. Only the thread writes to the
 * cache; the lock is for readers, and deltas are called outside it.
 *
 * A kind of another project (api_resource.foreign) that the server does not serve is not installed:
 * the cache counts as synced, empty, and the question is asked again slowly. Once it was there, 404
 * is a failure like others: its objects are not taken for gone. */
#include "kube/informer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/str.h"
#include "http/client.h"
#include "kube/cache.h"
#include "kube/change.h"

enum {
    /* The server ends the stream, a resume costs one round trip. Silence for longer than that is a
     * dead path: of a kind in which nothing ever changes kube-apiserver sends no bookmarks. */
    WATCH_TIMEOUT_S = 120,
    WATCH_IDLE_MS = 150000,
    PAUSE_MIN_MS = 100,
    PAUSE_MAX_MS = 10000,
    PAUSE_ABSENT_MS = 60000,
};

struct kube_informer {
    struct kube_informer_config cfg;
    char *ns, *label_selector, *field_selector;
    const struct api_resource *resource;
    pthread_t thread;
    bool begun; /* written by whoever starts and stops */

    /* The thread's own. */
    char *version;           /* to watch from; NULL = list first */
    struct kube_lines lines; /* of the stream */
    bool progress;           /* the current round delivered something */
    bool too_old;
    bool listed; /* a list came through once */
    bool absent; /* the kind is not installed */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct kube_cache cache; /* written by the thread only */
    bool synced, stopping;
    struct ferry_error last_error;
};

/* ---- cache -----------------------------------------------------------------------------------
 */

static void deliver(struct kube_informer *inf, struct api_object *old, struct api_object *now)
{
    if (inf->cfg.on_delta) {
        inf->cfg.on_delta(inf->cfg.ctx, old, now);
    }
}

static void put(struct kube_informer *inf, struct api_object *o)
{
    api_cleanup_object struct api_object *old = NULL;

    pthread_mutex_lock(&inf->lock);
    bool changed = kube_cache_put(&inf->cache, o, &old);
    pthread_mutex_unlock(&inf->lock);
    if (changed) {
        deliver(inf, old, o);
    }
}

static void drop(struct kube_informer *inf, const char *ns, const char *name)
{
    pthread_mutex_lock(&inf->lock);
    api_cleanup_object struct api_object *old = kube_cache_drop(&inf->cache, ns, name);
    pthread_mutex_unlock(&inf->lock);
    if (old) {
        deliver(inf, old, NULL);
    }
}

/* Makes the cache what the list says. */
static void put_all(struct kube_informer *inf, const struct kube_list *l)
{
    size_t n = 0;

    pthread_mutex_lock(&inf->lock);
    kube_cache_begin_round(&inf->cache);
    pthread_mutex_unlock(&inf->lock);
    for (size_t i = 0; i < l->n; i++) {
        put(inf, l->items[i]);
    }
    pthread_mutex_lock(&inf->lock);
    ferry_cleanup_free struct api_object **gone = kube_cache_end_round(&inf->cache, &n);
    pthread_mutex_unlock(&inf->lock);
    for (size_t i = 0; i < n; i++) {
        deliver(inf, gone[i], NULL);
        api_object_unref(gone[i]);
    }
}

/* ---- list ------------------------------------------------------------------------------------
 */

static void note_synced(struct kube_informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    inf->synced = true;
    pthread_cond_broadcast(&inf->changed);
    pthread_mutex_unlock(&inf->lock);
}

static int list(struct kube_informer *inf, struct ferry_error *err)
{
    kube_cleanup_list struct kube_list l = {0};
    struct kube_ref ref = {.resource = inf->resource, .ns = inf->ns};
    struct kube_list_options options = {.label_selector = inf->label_selector,
                                        .field_selector = inf->field_selector};
    int rc = kube_client_list(inf->cfg.client, ref, &options, &l, err);

    if (rc < 0) {
        inf->absent = inf->resource->foreign && !inf->listed && err->http == 404;
        if (inf->absent) {
            note_synced(inf);
        }
        return rc;
    }
    inf->listed = true;
    inf->absent = false;
    put_all(inf, &l);
    inf->version = ferry_take_ptr(l.resource_version);
    note_synced(inf);
    return 0;
}

/* ---- watch -----------------------------------------------------------------------------------
 */

static bool stopping(void *ctx)
{
    struct kube_informer *inf = ctx;

    pthread_mutex_lock(&inf->lock);
    bool s = inf->stopping;
    pthread_mutex_unlock(&inf->lock);
    return s;
}

static void set_version(struct kube_informer *inf, const char *version)
{
    if (!ferry_str_empty(version)) {
        free(inf->version);
        inf->version = ferry_strdup(version);
    }
}

/* One line of the stream. An error ends the stream; too_old says that the next round lists. */
static int apply_line(void *ctx, struct ferry_buf *line, struct ferry_error *err)
{
    struct kube_informer *inf = ctx;
    kube_cleanup_change struct kube_change c = {0};
    int rc = kube_change_read(line, inf->resource, &c, err);

    if (rc < 0) {
        return ferry_wrap(err, "watch of %s", inf->resource->plural);
    }
    switch (c.type) {
    case KUBE_CHANGE_PUT:
        put(inf, c.object);
        break;
    case KUBE_CHANGE_DELETED:
        drop(inf, c.ns, c.name);
        break;
    case KUBE_CHANGE_BOOKMARK:
        break;
    case KUBE_CHANGE_BROKEN:
        /* The cache keeps what it had: one malformed object must not stop the others. */
        ferry_error("malformed object in a watch", F_STR("resource", inf->resource->plural),
                    F_STR("name", c.name), F_ERR(&c.problem));
        break;
    case KUBE_CHANGE_ERROR:
        inf->too_old = c.code == 410;
        return ferry_fail(err, FERRY_RETRY, "watch of %s: %s", inf->resource->plural,
                          c.problem.msg);
    }
    set_version(inf, c.version);
    inf->progress = true;
    return stopping(inf) ? ferry_fail(err, FERRY_CANCELLED, "stopped") : 0;
}

struct watch {
    struct kube_informer *inf;
    struct ferry_error *err;
    int rc;
};

static bool watch_stop(void *ctx)
{
    return stopping(((struct watch *)ctx)->inf);
}

static bool watch_data(void *ctx, const char *data, size_t n)
{
    struct watch *w = ctx;

    w->rc = kube_lines_feed(&w->inf->lines, data, n, apply_line, w->inf, w->err);
    return w->rc == 0;
}

static char *watch_path(const struct kube_informer *inf)
{
    ferry_cleanup_free char *plain = api_path(inf->resource, inf->ns, NULL, NULL);
    ferry_cleanup_free char *version = http_escape(inf->version);
    ferry_cleanup_buf struct ferry_buf b = {0};

    ferry_buf_printf(&b,
                     "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s",
                     plain, WATCH_TIMEOUT_S, version);
    if (inf->label_selector) {
        ferry_cleanup_free char *s = http_escape(inf->label_selector);

        ferry_buf_printf(&b, "&labelSelector=%s", s);
    }
    if (inf->field_selector) {
        ferry_cleanup_free char *s = http_escape(inf->field_selector);

        ferry_buf_printf(&b, "&fieldSelector=%s", s);
    }
    return ferry_buf_take(&b);
}

static int watch(struct kube_informer *inf, struct ferry_error *err)
{
    ferry_cleanup_free char *path = watch_path(inf);
    ferry_cleanup_buf struct ferry_buf body = {0};
    struct ferry_error inner = {0};
    struct watch w = {.inf = inf, .err = &inner};
    int status = 0;

    inf->lines.partial.len = 0;
    inf->too_old = false;
    int rc = http_client_stream(kube_client_http(inf->cfg.client),
                                &(struct http_stream_call){.path = path,
                                                           .accept = "application/json",
                                                           .idle_ms = WATCH_IDLE_MS,
                                                           .on_data = watch_data,
                                                           .stop = watch_stop,
                                                           .ctx = &w},
                                &status, &body, err);
    if (w.rc < 0) {
        if (err) {
            *err = inner;
        }
        rc = w.rc;
    } else if (status != 0 && status != 200) {
        inf->too_old = status == 410;
        rc = kube_status_error(status, body.data, body.len, "watch", err);
    }
    if (inf->too_old) {
        free(inf->version);
        inf->version = NULL;
    }
    return rc;
}

/* ---- thread ----------------------------------------------------------------------------------
 */

static void pause_ms(struct kube_informer *inf, int64_t ms)
{
    int64_t until = ferry_now_ns() + ms * FERRY_NS_PER_MS;

    pthread_mutex_lock(&inf->lock);
    while (!inf->stopping && ferry_now_ns() < until) {
        ferry_cond_wait(&inf->changed, &inf->lock, until);
    }
    pthread_mutex_unlock(&inf->lock);
}

/* List if needed, then one watch. */
static int follow(struct kube_informer *inf, struct ferry_error *err)
{
    if (!inf->version) {
        int rc = list(inf, err);

        if (rc < 0) {
            return rc;
        }
        inf->progress = true;
    }
    return watch(inf, err);
}

static void note_absent(const struct kube_informer *inf)
{
    ferry_info("kind is not installed at the API server: treated as empty, retried slowly",
               F_STR("resource", inf->resource->plural), F_STR("group", inf->resource->group));
}

static void note_failure(struct kube_informer *inf, const struct ferry_error *err, bool repeated)
{
    enum ferry_log_level level = repeated || inf->too_old ? FERRY_LOG_DEBUG : FERRY_LOG_WARN;

    FERRY_LOG(level, "watching the API server was interrupted",
              F_STR("resource", inf->resource->plural), F_ERR(err));
    pthread_mutex_lock(&inf->lock);
    inf->last_error = *err;
    pthread_mutex_unlock(&inf->lock);
}

/* Half to one and a half of it, so that many who lost the same server do not come back at once. */
static int64_t jittered(int64_t ms, unsigned *seed)
{
    return ms / 2 + rand_r(seed) % ms;
}

static void *informer_thread(void *arg)
{
    struct kube_informer *inf = arg;
    unsigned seed = (unsigned)ferry_now_ns() ^ (unsigned)(uintptr_t)inf;
    int64_t pause = 0;

    while (!stopping(inf)) {
        struct ferry_error err = {0};

        inf->progress = false;
        int64_t began = ferry_now_ns();
        int rc = follow(inf, &err);

        if (stopping(inf)) {
            break;
        }
        if (inf->progress && !inf->too_old) {
            pause = 0;
        }
        if (rc < 0 && inf->absent) {
            if (pause < PAUSE_ABSENT_MS) {
                note_absent(inf);
            }
            pause = PAUSE_ABSENT_MS;
            pause_ms(inf, jittered(pause, &seed));
            continue;
        }
        if (rc < 0) {
            note_failure(inf, &err, pause > 0);
        } else if (ferry_now_ns() - began > FERRY_NS_PER_S) {
            continue; /* the server's ordinary end of a stream */
        }
        pause = pause ? pause * 2 : PAUSE_MIN_MS;
        pause = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
        pause_ms(inf, jittered(pause, &seed));
    }
    return NULL;
}

/* ---- outside ---------------------------------------------------------------------------------
 */

static void informer_free(struct kube_informer *inf)
{
    kube_cache_done(&inf->cache);
    kube_lines_done(&inf->lines);
    free(inf->version);
    free(inf->ns);
    free(inf->label_selector);
    free(inf->field_selector);
    pthread_cond_destroy(&inf->changed);
    pthread_mutex_destroy(&inf->lock);
    free(inf);
}

struct kube_informer *kube_informer_new(const struct kube_informer_config *cfg)
{
    struct kube_informer *inf = ferry_xcalloc(1, sizeof(*inf));

    inf->cfg = *cfg;
    inf->resource = cfg->resource ? cfg->resource : api_resource_of_kind(cfg->kind);
    inf->cache.index = cfg->index;
    inf->ns = ferry_strdup(cfg->ns);
    inf->label_selector = ferry_strdup(cfg->label_selector);
    inf->field_selector = ferry_strdup(cfg->field_selector);
    pthread_mutex_init(&inf->lock, NULL);
    pthread_cond_init(&inf->changed, NULL);
    return inf;
}

int kube_informer_begin(struct kube_informer *inf, struct ferry_error *err)
{
    int e = pthread_create(&inf->thread, NULL, informer_thread, inf);

    if (e != 0) {
        return ferry_fail_errno(err, e, "starting to watch %s", inf->resource->plural);
    }
    inf->begun = true;
    return 0;
}

int kube_informer_start(const struct kube_informer_config *cfg, struct kube_informer **ret,
                        struct ferry_error *err)
{
    struct kube_informer *inf = kube_informer_new(cfg);
    int rc = kube_informer_begin(inf, err);

    if (rc < 0) {
        informer_free(inf);
        return rc;
    }
    *ret = inf;
    return 0;
}

void kube_informer_cancel(struct kube_informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    inf->stopping = true;
    pthread_cond_broadcast(&inf->changed);
    pthread_mutex_unlock(&inf->lock);
}

void kube_informer_join(struct kube_informer *inf)
{
    if (inf->begun) {
        kube_informer_cancel(inf);
        pthread_join(inf->thread, NULL);
        inf->begun = false;
    }
}

void kube_informer_stop(struct kube_informer *inf)
{
    if (inf) {
        kube_informer_join(inf);
        informer_free(inf);
    }
}

bool kube_informer_synced(struct kube_informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    bool s = inf->synced;
    pthread_mutex_unlock(&inf->lock);
    return s;
}

int kube_informer_wait_synced(struct kube_informer *inf, int64_t deadline_ns,
                              struct ferry_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&inf->lock);
    while (!inf->synced && !inf->stopping && ferry_now_ns() < deadline_ns) {
        ferry_cond_wait(&inf->changed, &inf->lock, deadline_ns);
    }
    if (!inf->synced) {
        const char *why = inf->last_error.msg[0] ? inf->last_error.msg : "no answer yet";

        rc = ferry_fail(err, FERRY_RETRY, "no list of %s from the API server: %.400s",
                        inf->resource->plural, why);
    }
    pthread_mutex_unlock(&inf->lock);
    return rc;
}

struct api_object *kube_informer_get(struct kube_informer *inf, const char *ns, const char *name)
{
    pthread_mutex_lock(&inf->lock);
    struct api_object *o = kube_cache_get(&inf->cache, ns, name);
    o = o ? api_object_ref(o) : NULL;
    pthread_mutex_unlock(&inf->lock);
    return o;
}

struct kube_snapshot kube_informer_list(struct kube_informer *inf)
{
    struct kube_snapshot s = {0};

    pthread_mutex_lock(&inf->lock);
    s.items = ferry_xcalloc(inf->cache.n + 1, sizeof(struct api_object *));
    for (; s.n < inf->cache.n; s.n++) {
        s.items[s.n] = api_object_ref(inf->cache.items[s.n].object);
    }
    pthread_mutex_unlock(&inf->lock);
    return s;
}

struct kube_snapshot kube_informer_find(struct kube_informer *inf, const char *key)
{
    struct kube_snapshot s = {0};

    pthread_mutex_lock(&inf->lock);
    size_t n = 0;
    struct api_object *const *items = kube_index_find(&inf->cache.by_index, key, &n);
    s.items = ferry_xcalloc(n + 1, sizeof(struct api_object *));
    for (; s.n < n; s.n++) {
        s.items[s.n] = api_object_ref(items[s.n]);
    }
    pthread_mutex_unlock(&inf->lock);
    return s;
}

void kube_snapshot_done(struct kube_snapshot *s)
{
    for (size_t i = 0; i < s->n; i++) {
        api_object_unref(s->items[i]);
    }
    free(s->items);
    *s = (struct kube_snapshot){0};
}
