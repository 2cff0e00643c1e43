/* Theory of operation. `write_lock` is held from store_begin() to store_commit() or store_abort():
 * one writer. Changes of a transaction go into SQLite at once and are remembered in `pending`; only
 * when SQLite has committed (WAL, synchronous=FULL: on disk) do they enter the index that readers
 * see, and then the hub, in the same order. So a reader never sees what a crash could take back.
 *
 * The index is one array per resource, sorted by namespace and name, under `index_lock`. Lock
 * order: write_lock, index_lock; the hub's own lock last. */
#include "apiserver/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { SCHEMA_VERSION = 1, MAX_RESOURCES = 64, MAX_PENDING = 4 };
enum { WINDOW_EVENTS = 16384, WINDOW_BYTES = 32 << 20 };

struct shelf {
    struct entry **items;
    size_t n, cap;
};

struct change {
    enum hub_type type;
    struct entry *now, *before;
};

enum statement { SQL_PUT, SQL_REMOVE, SQL_VERSION, SQL_COUNT };
static const char *const statements[] = {
    [SQL_PUT] = ("INSERT OR REPLACE INTO objects(resource, namespace, name, version, json) "
                 "VALUES(?1, ?2, ?3, ?4, ?5)"),
    [SQL_REMOVE] = "DELETE FROM objects WHERE resource=?1 AND namespace=?2 AND name=?3",
    [SQL_VERSION] = "INSERT OR REPLACE INTO counters(name, value) VALUES('version', ?1)",
};
_Static_assert(sizeof(statements) / sizeof(statements[0]) == SQL_COUNT, "one text per statement");

struct store {
    pthread_mutex_t write_lock; /* db, sql, pending, next_version, in_transaction */
    sqlite3 *db;
    sqlite3_stmt *sql[SQL_COUNT];
    struct change pending[MAX_PENDING];
    size_t n_pending;
    uint64_t next_version;
    bool in_transaction;

    pthread_rwlock_t index_lock; /* shelves, version */
    struct shelf shelves[MAX_RESOURCES];
    uint64_t version;

    struct hub *hub;
};

/* ---- the index ---------------------------------------------------------------------------------
 */

static struct shelf *shelf_of(struct store *s, const struct api_resource *r)
{
    return &s->shelves[r - api_resources()];
}

static int compare(const struct entry *e, const char *ns, const char *name)
{
    int c = strcmp(e->ns, ns);

    return c ? c : strcmp(e->name, name);
}

/* Where it is, or where it would be. */
static size_t position(const struct shelf *shelf, const char *ns, const char *name, bool *found)
{
    size_t low = 0, high = shelf->n;

    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare(shelf->items[middle], ns, name);

        if (c == 0) {
            *found = true;
            return middle;
        }
        if (c < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void shelf_put(struct shelf *shelf, struct entry *take)
{
    bool found;
    size_t at = position(shelf, take->ns, take->name, &found);

    if (found) {
        entry_unref(shelf->items[at]);
        shelf->items[at] = take;
        return;
    }
    if (shelf->n == shelf->cap) {
        shelf->cap = shelf->cap ? shelf->cap * 2 : 16;
        shelf->items = ferry_xrealloc(shelf->items, shelf->cap, sizeof(struct entry *));
    }
    memmove(shelf->items + at + 1, shelf->items + at, (shelf->n - at) * sizeof(struct entry *));
    shelf->items[at] = take;
    shelf->n++;
}

static void shelf_remove(struct shelf *shelf, const char *ns, const char *name)
{
    bool found;
    size_t at = position(shelf, ns, name, &found);

    if (!found) {
        return;
    }
    entry_unref(shelf->items[at]);
    shelf->n--;
    memmove(shelf->items + at, shelf->items + at + 1, (shelf->n - at) * sizeof(struct entry *));
}

struct entry *store_get(struct store *s, const struct api_resource *r, const char *ns,
                        const char *name)
{
    struct shelf *shelf = shelf_of(s, r);
    bool found;

    pthread_rwlock_rdlock(&s->index_lock);
    size_t at = position(shelf, ns ? ns : "", name, &found);
    struct entry *e = found ? entry_ref(shelf->items[at]) : NULL;
    pthread_rwlock_unlock(&s->index_lock);
    return e;
}

void store_list(struct store *s, const struct api_resource *r, const char *ns,
                struct entry_list *ret)
{
    struct shelf *shelf = shelf_of(s, r);
    bool found;

    pthread_rwlock_rdlock(&s->index_lock);
    size_t from = ns ? position(shelf, ns, "", &found) : 0;
    size_t to = from;
    while (to < shelf->n && (!ns || strcmp(shelf->items[to]->ns, ns) == 0)) {
        to++;
    }
    *ret = (struct entry_list){.items = ferry_xcalloc(to - from, sizeof(struct entry *)),
                               .n = to - from,
                               .version = s->version};
    for (size_t i = from; i < to; i++) {
        ret->items[i - from] = entry_ref(shelf->items[i]);
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

struct hub *store_hub(struct store *s)
{
    return s->hub;
}

/* ---- SQLite ------------------------------------------------------------------------------------
 */

static int fail_sql(struct store *s, struct ferry_error *err, const char *what)
{
    return ferry_fail(err, FERRY_FATAL, "%s: %s", what, sqlite3_errmsg(s->db));
}

static int run_sql(struct store *s, const char *sql, struct ferry_error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sql(s, err, sql);
}

static const struct api_resource *resource_named(const char *stored)
{
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        size_t n = strlen(r->group);

        if (strncmp(stored, r->group, n) == 0 && stored[n] == '/' &&
            strcmp(stored + n + 1, r->plural) == 0) {
            return r;
        }
    }
    return NULL;
}

static int schema_version(struct store *s, int *ret, struct ferry_error *err)
{
    sqlite3_stmt *q = NULL;

    if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL) != SQLITE_OK ||
        sqlite3_step(q) != SQLITE_ROW) {
        sqlite3_finalize(q);
        return fail_sql(s, err, "reading the schema version");
    }
    *ret = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return 0;
}

static int make_schema(struct store *s, struct ferry_error *err)
{
    int version = 0;
    int rc = schema_version(s, &version, err);

    if (rc < 0 || version == SCHEMA_VERSION) {
        return rc;
    }
    if (version != 0) {
        return ferry_fail(err, FERRY_INVALID,
                          "the database has schema version %d, this program knows %d", version,
                          SCHEMA_VERSION);
    }
    return run_sql(s,
                   "BEGIN IMMEDIATE;"
                   "CREATE TABLE objects(resource TEXT NOT NULL, namespace TEXT NOT NULL,"
                   " name TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,"
                   " PRIMARY KEY(resource, namespace, name)) WITHOUT ROWID;"
                   "CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
                   "INSERT INTO counters VALUES('version', 1);"
                   "PRAGMA user_version=1;"
                   "COMMIT",
                   err);
}

static int load_version(struct store *s, struct ferry_error *err)
{
    sqlite3_stmt *q = NULL;

    if (sqlite3_prepare_v2(s->db, "SELECT value FROM counters WHERE name='version'", -1, &q,
                           NULL) != SQLITE_OK ||
        sqlite3_step(q) != SQLITE_ROW) {
        sqlite3_finalize(q);
        return fail_sql(s, err, "reading the resource version");
    }
    s->version = (uint64_t)sqlite3_column_int64(q, 0);
    s->next_version = s->version + 1;
    sqlite3_finalize(q);
    return 0;
}

static int load_objects(struct store *s, struct ferry_error *err)
{
    sqlite3_stmt *q = NULL;
    int rc;

    if (sqlite3_prepare_v2(s->db, "SELECT resource, namespace, name, version, json FROM objects",
                           -1, &q, NULL) != SQLITE_OK) {
        return fail_sql(s, err, "reading the objects");
    }
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const struct api_resource *r = resource_named((const char *)sqlite3_column_text(q, 0));

        if (!r) {
            continue; /* a kind of a newer program: kept on disk, not served */
        }
        shelf_put(shelf_of(s, r), entry_new(r, (uint64_t)sqlite3_column_int64(q, 3),
                                            (const char *)sqlite3_column_text(q, 1),
                                            (const char *)sqlite3_column_text(q, 2),
                                            (const char *)sqlite3_column_text(q, 4),
                                            (size_t)sqlite3_column_bytes(q, 4)));
    }
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? 0 : fail_sql(s, err, "reading the objects");
}

static int open_database(struct store *s, const char *path, struct ferry_error *err)
{
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK) {
        return fail_sql(s, err, "opening it");
    }
    /* Exclusive: a second server on the same file is refused instead of sharing it. */
    int rc = run_sql(s,
                     "PRAGMA locking_mode=EXCLUSIVE;"
                     "PRAGMA journal_mode=WAL;"
                     "PRAGMA synchronous=FULL;"
                     "PRAGMA cache_size=-2048;",
                     err);
    if (sqlite3_errcode(s->db) == SQLITE_BUSY) {
        return ferry_fail(err, FERRY_CONFLICT, "another process has it open");
    }
    if (rc == 0) {
        rc = make_schema(s, err);
    }
    if (sqlite3_errcode(s->db) == SQLITE_BUSY) {
        return ferry_fail(err, FERRY_CONFLICT, "another process has it open");
    }
    for (int i = 0; rc == 0 && i < SQL_COUNT; i++) {
        if (sqlite3_prepare_v2(s->db, statements[i], -1, &s->sql[i], NULL) != SQLITE_OK) {
            rc = fail_sql(s, err, "preparing a statement");
        }
    }
    rc = rc < 0 ? rc : load_version(s, err);
    return rc < 0 ? rc : load_objects(s, err);
}

int store_open(const char *path, struct store **ret, struct ferry_error *err)
{
    struct store *s = ferry_xcalloc(1, sizeof(*s));

    pthread_mutex_init(&s->write_lock, NULL);
    pthread_rwlock_init(&s->index_lock, NULL);
    int rc = open_database(s, path, err);
    s->hub = hub_new(s->version, WINDOW_EVENTS, WINDOW_BYTES);
    if (rc < 0) {
        store_close(s);
        return ferry_wrap(err, "database %s", path);
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s) {
        return;
    }
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(s->sql[i]);
    }
    sqlite3_close(s->db);
    hub_free(s->hub);
    for (size_t i = 0; i < MAX_RESOURCES; i++) {
        for (size_t j = 0; j < s->shelves[i].n; j++) {
            entry_unref(s->shelves[i].items[j]);
        }
        free(s->shelves[i].items);
    }
    pthread_rwlock_destroy(&s->index_lock);
    pthread_mutex_destroy(&s->write_lock);
    free(s);
}

/* ---- transactions ------------------------------------------------------------------------------
 */

static int step(struct store *s, enum statement which, struct ferry_error *err, const char *what)
{
    int rc = sqlite3_step(s->sql[which]);

    sqlite3_reset(s->sql[which]);
    sqlite3_clear_bindings(s->sql[which]);
    return rc == SQLITE_DONE ? 0 : fail_sql(s, err, what);
}

void store_begin(struct store *s)
{
    pthread_mutex_lock(&s->write_lock);
}

/* Begins in SQLite at the first change, so that a transaction that only looks costs nothing. */
static int begin_sql(struct store *s, struct ferry_error *err)
{
    if (s->n_pending == MAX_PENDING) {
        return ferry_fail(err, FERRY_FATAL, "too many changes in one transaction");
    }
    if (s->in_transaction) {
        return 0;
    }
    int rc = run_sql(s, "BEGIN IMMEDIATE", err);
    s->in_transaction = rc == 0;
    return rc;
}

static void bind_key(sqlite3_stmt *q, const struct api_resource *r, const char *ns,
                     const char *name)
{
    char resource[256];
    int n = snprintf(resource, sizeof(resource), "%s/%s", r->group, r->plural);

    sqlite3_bind_text(q, 1, resource, n, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 2, ns, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(q, 3, name, -1, SQLITE_TRANSIENT);
}

/* The document as text, with its version. */
static char *stamp(yyjson_mut_doc *doc, uint64_t version, size_t *ret_len)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_get(root, "metadata");
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    yyjson_mut_obj_put(meta, yyjson_mut_str(doc, "resourceVersion"), yyjson_mut_strcpy(doc, text));
    return yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, ret_len);
}

static void remember(struct store *s, enum hub_type type, struct entry *now_take,
                     struct entry *before_take)
{
    s->pending[s->n_pending++] =
        (struct change){.type = type, .now = now_take, .before = before_take};
    s->next_version++;
}

int store_put(struct store *s, const struct api_resource *r, const char *ns, const char *name,
              yyjson_mut_doc *doc, struct ferry_error *err)
{
    size_t len = 0;
    uint64_t version = s->next_version;
    ferry_cleanup_free char *json = stamp(doc, version, &len);
    int rc = begin_sql(s, err);

    if (rc < 0 || !json) {
        return rc < 0 ? rc : ferry_fail(err, FERRY_FATAL, "the object cannot be written as JSON");
    }
    ns = ns ? ns : "";
    bind_key(s->sql[SQL_PUT], r, ns, name);
    sqlite3_bind_int64(s->sql[SQL_PUT], 4, (sqlite3_int64)version);
    sqlite3_bind_text(s->sql[SQL_PUT], 5, json, (int)len, SQLITE_STATIC);
    rc = step(s, SQL_PUT, err, "writing an object");
    if (rc == 0) {
        struct entry *before = store_get(s, r, ns, name);

        remember(s, before ? HUB_MODIFIED : HUB_ADDED, entry_new(r, version, ns, name, json, len),
                 before);
    }
    return rc;
}

int store_remove(struct store *s, const struct entry *e, yyjson_mut_doc *doc,
                 struct ferry_error *err)
{
    size_t len = 0;
    uint64_t version = s->next_version;
    ferry_cleanup_free char *json = stamp(doc, version, &len);
    int rc = begin_sql(s, err);

    if (rc < 0 || !json) {
        return rc < 0 ? rc : ferry_fail(err, FERRY_FATAL, "the object cannot be written as JSON");
    }
    bind_key(s->sql[SQL_REMOVE], e->resource, e->ns, e->name);
    rc = step(s, SQL_REMOVE, err, "removing an object");
    if (rc == 0) {
        remember(s, HUB_DELETED, entry_new(e->resource, version, e->ns, e->name, json, len),
                 store_get(s, e->resource, e->ns, e->name));
    }
    return rc;
}

static void publish(struct store *s)
{
    pthread_rwlock_wrlock(&s->index_lock);
    for (size_t i = 0; i < s->n_pending; i++) {
        struct change *c = &s->pending[i];
        struct shelf *shelf = shelf_of(s, c->now->resource);

        if (c->type == HUB_DELETED) {
            shelf_remove(shelf, c->now->ns, c->now->name);
        } else {
            shelf_put(shelf, entry_ref(c->now));
        }
        s->version = c->now->version;
    }
    /* Inside the lock: whoever lists at a version finds the hub at that version or later. */
    for (size_t i = 0; i < s->n_pending; i++) {
        hub_publish(s->hub, s->pending[i].type, s->pending[i].now, s->pending[i].before);
    }
    pthread_rwlock_unlock(&s->index_lock);
}

static void forget(struct store *s)
{
    for (size_t i = 0; i < s->n_pending; i++) {
        entry_unref(s->pending[i].now);
        entry_unref(s->pending[i].before);
    }
    s->n_pending = 0;
    s->in_transaction = false;
    s->next_version = s->version + 1; /* the writer alone changes `version` */
}

int store_commit(struct store *s, struct entry **ret, struct ferry_error *err)
{
    int rc = 0;

    if (!s->in_transaction) {
        pthread_mutex_unlock(&s->write_lock);
        return ferry_fail(err, FERRY_FATAL, "nothing to commit");
    }
    sqlite3_bind_int64(s->sql[SQL_VERSION], 1, (sqlite3_int64)(s->next_version - 1));
    rc = step(s, SQL_VERSION, err, "writing the resource version");
    if (rc == 0) {
        rc = run_sql(s, "COMMIT", err);
    }
    if (rc < 0) {
        store_abort(s);
        return rc;
    }
    publish(s);
    if (ret) {
        *ret = entry_ref(s->pending[s->n_pending - 1].now);
    }
    forget(s);
    pthread_mutex_unlock(&s->write_lock);
    return 0;
}

void store_abort(struct store *s)
{
    if (s->in_transaction && !sqlite3_get_autocommit(s->db)) {
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    forget(s);
    pthread_mutex_unlock(&s->write_lock);
}
