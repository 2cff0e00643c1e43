/* Theory of operation. A transaction is made in memory: `write_lock` is held from store_begin() to
 * store_commit() or store_abort(), so its maker alone decides, on what is there. Committing puts
 * its changes at the end of `staged`, lets the next writer in, and waits. One thread, the flusher,
 * takes all that is staged, writes it to SQLite in one transaction (WAL, synchronous=FULL: on
 * disk), puts it into the index that readers see, then into the hub, in that order, and wakes those
 * who wait: many writers share one fsync. A transaction that ends without a change waits, too: its
 * maker may have seen what is not on disk yet, and answers by it. A reader never sees what a crash
 * could take back; a writer inside its transaction sees what is staged too, because it will be
 * there before its own changes are.
 *
 * When a write to SQLite fails, everything staged fails with it: later changes were decided on top
 * of what is not there. The next ones begin anew on what is.
 *
 * What readers see is one store_index per resource, under `index_lock`. Lock order: write_lock,
 * index_lock; the hub's own lock last. */
#include "apiserver/store/store.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/store/database.h"
#include "apiserver/store/store_index.h"
#include "base/log.h"
#include "base/str.h"

enum { MAX_RESOURCES = 64 };
enum { WINDOW_EVENTS = 16384, WINDOW_BYTES = 32 << 20 };

struct change {
    enum hub_type type;
    struct entry *now, *before;
};

struct changes {
    struct change *items;
    size_t n, cap;
};

/* A committed transaction whose maker waits for it to be on disk. */
struct waiter {
    struct waiter *next;
    sem_t done;
    int rc;
    struct ferry_error err;
};

struct store {
    struct database *db; /* the flusher's alone */
    pthread_t flusher;
    bool flusher_runs;

    pthread_mutex_t write_lock; /* down to `stop` */
    pthread_cond_t work;
    struct changes pending; /* of the transaction that is being made */
    struct changes staged;  /* committed, not in the index yet; the flusher's first */
    struct waiter *waiters, **waiters_end; /* for what is staged and the flusher has not taken */
    uint64_t next_version;
    bool stop;

    pthread_rwlock_t index_lock; /* indexes, version, changed */
    struct store_index indexes[MAX_RESOURCES];
    uint64_t version;
    uint64_t changed[MAX_RESOURCES]; /* the version of the last change of each */

    struct hub *hub;
};

/* The store on which this thread has a transaction open. */
static _Thread_local const struct store *writing;

/* ---- the index ---------------------------------------------------------------------------------
 */

static struct store_index *index_of(struct store *s, const struct api_resource *r)
{
    return &s->indexes[r - api_resources()];
}

/* ---- changes on their way ----------------------------------------------------------------------
 */

static void changes_add(struct changes *c, enum hub_type type, struct entry *now_take,
                        struct entry *before_take)
{
    if (c->n == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 16;
        c->items = ferry_xrealloc(c->items, c->cap, sizeof(*c->items));
    }
    c->items[c->n++] = (struct change){.type = type, .now = now_take, .before = before_take};
}

/* The first `n` are over. */
static void changes_drop(struct changes *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        entry_unref(c->items[i].now);
        entry_unref(c->items[i].before);
    }
    c->n -= n;
    if (c->n) {
        memmove(c->items, c->items + n, c->n * sizeof(*c->items));
    }
}

/* What is staged of this object, newest first, or NULL. */
static const struct change *staged_of(const struct store *s, const struct api_resource *r,
                                      const char *ns, const char *name)
{
    for (size_t i = s->staged.n; i-- > 0;) {
        const struct change *c = &s->staged.items[i];

        if (c->now->resource == r && strcmp(c->now->ns, ns) == 0 &&
            strcmp(c->now->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

struct entry *store_get(struct store *s, const struct api_resource *r, const char *ns,
                        const char *name)
{
    const struct change *c = NULL;

    ns = ns ? ns : "";
    if (writing == s && (c = staged_of(s, r, ns, name))) {
        return c->type == HUB_DELETED ? NULL : entry_ref(c->now);
    }
    pthread_rwlock_rdlock(&s->index_lock);
    struct entry *e = store_index_get(index_of(s, r), ns, name);
    e = e ? entry_ref(e) : NULL;
    pthread_rwlock_unlock(&s->index_lock);
    return e;
}

static bool is_in(const struct entry *e, const char *ns, const char *about)
{
    return (!ns || strcmp(ns, e->ns) == 0) && (!about || ferry_span_is(entry_about(e), about));
}

static void overlay_staged(struct store *s, const struct api_resource *r, const char *ns,
                           const char *about, struct entry_list *list)
{
    struct store_index index = {.items = list->items, .n = list->n, .cap = list->n};

    for (size_t i = 0; i < s->staged.n; i++) {
        const struct change *c = &s->staged.items[i];

        if (c->now->resource != r || !is_in(c->now, ns, about)) {
            continue;
        }
        if (c->type == HUB_DELETED) {
            store_index_remove(&index, c->now->ns, c->now->name);
        } else {
            store_index_put(&index, entry_ref(c->now));
        }
    }
    store_index_free_order(&index);
    list->items = index.items;
    list->n = index.n;
}

/* `items` are of one index, under the lock. */
static struct entry_list copy_of(const struct store *s, struct entry *const *items, size_t n)
{
    struct entry_list list = {
        .items = ferry_xcalloc(n, sizeof(struct entry *)), .n = n, .version = s->version};

    for (size_t i = 0; i < n; i++) {
        list.items[i] = entry_ref(items[i]);
    }
    return list;
}

void store_list(struct store *s, const struct api_resource *r, const char *ns,
                struct entry_list *ret)
{
    pthread_rwlock_rdlock(&s->index_lock);
    struct store_index_span span = store_index_list(index_of(s, r), ns);
    *ret = copy_of(s, span.items, span.n);
    pthread_rwlock_unlock(&s->index_lock);
    if (writing == s) {
        overlay_staged(s, r, ns, NULL, ret);
    }
}

void store_find(struct store *s, const struct api_resource *r, const char *ns, const char *about,
                struct entry_list *ret)
{
    pthread_rwlock_rdlock(&s->index_lock);
    struct store_index_span span = store_index_find(index_of(s, r), ns, about);
    *ret = copy_of(s, span.items, span.n);
    pthread_rwlock_unlock(&s->index_lock);
    if (writing == s) {
        overlay_staged(s, r, ns, about, ret);
    }
}

static void undo(struct store_index *index, const struct hub_event *e)
{
    if (e->type == HUB_ADDED) {
        store_index_remove(index, e->now->ns, e->now->name);
    } else {
        store_index_put(index, entry_ref(e->before));
    }
}

/* From what is now, backwards through the hub's window. */
int store_list_at(struct store *s, const struct api_resource *r, const char *ns, uint64_t version,
                  struct entry_list *ret)
{
    struct changes later = {0};
    uint64_t at = version;
    size_t n;
    int rc = 0;

    store_list(s, r, ns, ret);
    do {
        cleanup_hub_batch struct hub_batch batch = {0};

        rc = hub_wait(s->hub, r, at, 0, &batch);
        at = batch.version;
        n = rc == 0 ? batch.n : 0;
        for (size_t i = 0; i < n; i++) {
            const struct hub_event *e = &batch.events[i];

            if (e->now->version <= ret->version && (!ns || strcmp(ns, e->now->ns) == 0)) {
                changes_add(&later, e->type, entry_ref(e->now),
                            e->before ? entry_ref(e->before) : NULL);
            }
        }
    } while (n);
    struct store_index index = {.items = ret->items, .n = ret->n, .cap = ret->n};
    for (size_t i = later.n; i-- > 0;) {
        undo(&index, &(struct hub_event){.type = later.items[i].type,
                                         .now = later.items[i].now,
                                         .before = later.items[i].before});
    }
    changes_drop(&later, later.n);
    free(later.items);
    store_index_free_order(&index);
    *ret = (struct entry_list){.items = index.items, .n = index.n, .version = version};
    return rc;
}

void store_list_all(struct store *s, struct entry_list *ret)
{
    size_t n = 0;

    pthread_rwlock_rdlock(&s->index_lock);
    for (size_t i = 0; i < MAX_RESOURCES; i++) {
        n += s->indexes[i].n;
    }
    *ret = (struct entry_list){.items = ferry_xcalloc(n, sizeof(struct entry *)),
                               .version = s->version};
    for (size_t i = 0; i < MAX_RESOURCES; i++) {
        for (size_t j = 0; j < s->indexes[i].n; j++) {
            ret->items[ret->n++] = entry_ref(s->indexes[i].items[j]);
        }
    }
    pthread_rwlock_unlock(&s->index_lock);
}

uint64_t store_version(struct store *s)
{
    pthread_rwlock_rdlock(&s->index_lock);
    uint64_t v = s->version;
    pthread_rwlock_unlock(&s->index_lock);
    return v;
}

uint64_t store_changed(struct store *s, const struct api_resource *const *kinds, size_t n)
{
    uint64_t last = 0;

    pthread_rwlock_rdlock(&s->index_lock);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = s->changed[kinds[i] - api_resources()];

        last = v > last ? v : last;
    }
    pthread_rwlock_unlock(&s->index_lock);
    return last;
}

struct hub *store_hub(struct store *s)
{
    return s->hub;
}

/* ---- the flusher --------------------------------------------------------------------------------
 */

static void publish(struct store *s, const struct change *changes, size_t n)
{
    pthread_rwlock_wrlock(&s->index_lock);
    for (size_t i = 0; i < n; i++) {
        const struct change *c = &changes[i];
        struct store_index *index = index_of(s, c->now->resource);

        if (c->type == HUB_DELETED) {
            store_index_remove(index, c->now->ns, c->now->name);
        } else {
            store_index_put(index, entry_ref(c->now));
        }
        s->version = c->now->version;
        s->changed[c->now->resource - api_resources()] = s->version;
    }
    /* Inside the lock: whoever lists at a version finds the hub at that version or later. */
    for (size_t i = 0; i < n; i++) {
        hub_publish(s->hub, changes[i].type, changes[i].now, changes[i].before);
    }
    pthread_rwlock_unlock(&s->index_lock);
}

static void wake(struct waiter *w, int rc, const struct ferry_error *err)
{
    while (w) {
        struct waiter *next = w->next; /* it is gone once it is awake */

        w->rc = rc;
        if (rc < 0) {
            w->err = *err;
        }
        sem_post(&w->done);
        w = next;
    }
}

static struct waiter *take_waiters(struct store *s)
{
    struct waiter *w = s->waiters;

    s->waiters = NULL;
    s->waiters_end = &s->waiters;
    return w;
}

/* Called and returns with write_lock held, which it lets go of while it writes. */
static void write_staged(struct store *s)
{
    size_t n = s->staged.n;
    struct waiter *waiters = take_waiters(s);
    struct change *batch = ferry_xcalloc(n, sizeof(*batch));
    struct database_row *rows = ferry_xcalloc(n, sizeof(*rows));
    struct ferry_error err = {0};

    /* The entries stay: only this thread takes changes out of `staged`. */
    memcpy(batch, s->staged.items, n * sizeof(*batch));
    pthread_mutex_unlock(&s->write_lock);
    for (size_t i = 0; i < n; i++) {
        rows[i] =
            (struct database_row){.entry = batch[i].now, .remove = batch[i].type == HUB_DELETED};
    }
    int rc = database_write(s->db, rows, n, batch[n - 1].now->version, &err);
    if (rc == 0) {
        publish(s, batch, n);
    }
    pthread_mutex_lock(&s->write_lock);
    if (rc < 0) {
        wake(take_waiters(s), rc, &err);
        n = s->staged.n;
        s->next_version = s->version + 1; /* this thread alone changes `version` */
        ferry_warn("write failed", F_INT("changes", (int)n), F_ERR(&err));
    }
    changes_drop(&s->staged, n);
    wake(waiters, rc, &err);
    free(rows);
    free(batch);
}

static void *flusher_run(void *arg)
{
    struct store *s = arg;

    pthread_mutex_lock(&s->write_lock);
    while (!s->stop || s->staged.n || s->waiters) {
        if (s->staged.n) {
            write_staged(s);
        } else if (s->waiters) {
            wake(take_waiters(s), 0, NULL); /* they saw what is on disk by now */
        } else {
            pthread_cond_wait(&s->work, &s->write_lock);
        }
    }
    pthread_mutex_unlock(&s->write_lock);
    return NULL;
}

/* ---- life --------------------------------------------------------------------------------------
 */

static void load_entry(void *ctx, struct entry *take)
{
    struct store *s = ctx;

    store_index_put(index_of(s, take->resource), take);
}

int store_open(const char *path, struct store **ret, struct ferry_error *err)
{
    struct store *s = ferry_xcalloc(1, sizeof(*s));

    pthread_mutex_init(&s->write_lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_rwlock_init(&s->index_lock, NULL);
    s->waiters_end = &s->waiters;
    int rc = database_open(path, &s->db, err);
    rc = rc < 0 ? rc : database_load(s->db, &s->version, load_entry, s, err);
    s->next_version = s->version + 1;
    s->hub = hub_new(s->version, WINDOW_EVENTS, WINDOW_BYTES);
    if (rc == 0 && pthread_create(&s->flusher, NULL, flusher_run, s) != 0) {
        rc = ferry_fail(err, FERRY_FATAL, "starting the thread that writes");
    }
    if (rc < 0) {
        store_close(s);
        return ferry_wrap(err, "database %s", path);
    }
    s->flusher_runs = true;
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s) {
        return;
    }
    if (s->flusher_runs) {
        pthread_mutex_lock(&s->write_lock);
        s->stop = true;
        pthread_cond_signal(&s->work);
        pthread_mutex_unlock(&s->write_lock);
        pthread_join(s->flusher, NULL);
    }
    database_close(s->db);
    hub_free(s->hub);
    for (size_t i = 0; i < MAX_RESOURCES; i++) {
        store_index_done(&s->indexes[i]);
    }
    free(s->staged.items);
    free(s->pending.items);
    pthread_rwlock_destroy(&s->index_lock);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->write_lock);
    free(s);
}

/* ---- transactions ------------------------------------------------------------------------------
 */

void store_begin(struct store *s)
{
    pthread_mutex_lock(&s->write_lock);
    writing = s;
}

static void end(struct store *s)
{
    writing = NULL;
    pthread_mutex_unlock(&s->write_lock);
}

/* The document as an entry, with the next version. NULL when it cannot be written as text. */
static struct entry *stamp(struct store *s, const struct api_resource *r, const char *ns,
                           const char *name, yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    char text[24];
    size_t len = 0;

    snprintf(text, sizeof(text), "%llu", (unsigned long long)s->next_version);
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"), yyjson_mut_strcpy(doc, text));
    ferry_cleanup_free char *json = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, &len);
    return json ? entry_new(r, s->next_version++, ns, name, json, len) : NULL;
}

static int stage(struct store *s, enum hub_type type, struct entry *now_take,
                 struct entry *before_take, struct ferry_error *err)
{
    if (!now_take) {
        entry_unref(before_take);
        return ferry_fail(err, FERRY_INVALID, "the object cannot be written as JSON");
    }
    changes_add(&s->pending, type, now_take, before_take);
    return 0;
}

int store_put(struct store *s, const struct api_resource *r, const char *ns, const char *name,
              yyjson_mut_doc *doc, struct ferry_error *err)
{
    ns = ns ? ns : "";
    struct entry *before = store_get(s, r, ns, name);

    return stage(s, before ? HUB_MODIFIED : HUB_ADDED, stamp(s, r, ns, name, doc), before, err);
}

int store_remove(struct store *s, const struct entry *e, yyjson_mut_doc *doc,
                 struct ferry_error *err)
{
    return stage(s, HUB_DELETED, stamp(s, e->resource, e->ns, e->name, doc),
                 store_get(s, e->resource, e->ns, e->name), err);
}

/* Ends the transaction and waits until all that is staged is on disk. */
static int end_and_wait(struct store *s, struct ferry_error *err)
{
    struct waiter w = {0};

    sem_init(&w.done, 0, 0);
    *s->waiters_end = &w;
    s->waiters_end = &w.next;
    pthread_cond_signal(&s->work);
    end(s);
    while (sem_wait(&w.done) < 0) {
    }
    sem_destroy(&w.done);
    if (w.rc < 0 && err) {
        *err = w.err;
    }
    return w.rc;
}

int store_commit(struct store *s, struct entry **ret, struct ferry_error *err)
{
    if (!s->pending.n) {
        end(s);
        return ferry_fail(err, FERRY_FATAL, "nothing to commit");
    }
    struct entry *last = entry_ref(s->pending.items[s->pending.n - 1].now);
    for (size_t i = 0; i < s->pending.n; i++) {
        changes_add(&s->staged, s->pending.items[i].type, s->pending.items[i].now,
                    s->pending.items[i].before);
    }
    s->pending.n = 0;
    int rc = end_and_wait(s, err);
    if (rc < 0 || !ret) {
        entry_unref(last);
    } else {
        *ret = last;
    }
    return rc;
}

int store_abort(struct store *s, struct ferry_error *err)
{
    s->next_version -= s->pending.n;
    changes_drop(&s->pending, s->pending.n);
    if (s->staged.n) {
        return end_and_wait(s, err);
    }
    end(s);
    return 0;
}
