#include "apiserver/store/database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

/* What makes schema N out of schema N-1; a new file goes through all of them. */
static const char *const upgrades[] = {
    /* 1 */
    "CREATE TABLE objects(resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,"
    " PRIMARY KEY(resource, namespace, name)) WITHOUT ROWID;"
    "CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
    "INSERT INTO counters VALUES('version', 1);",
    /* 2: rows of some KB do not belong into the inner pages of a tree */
    "ALTER TABLE objects RENAME TO old_objects;"
    "CREATE TABLE objects(resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,"
    " PRIMARY KEY(resource, namespace, name));"
    "INSERT INTO objects SELECT resource, namespace, name, version, json FROM old_objects;"
    "DROP TABLE old_objects;",
};
enum { SCHEMA_VERSION = FERRY_COUNT(upgrades) };

enum statement { SQL_PUT, SQL_REMOVE, SQL_VERSION, SQL_COUNT };
static const char *const statements[] = {
    [SQL_PUT] = ("INSERT INTO objects(resource, namespace, name, version, json) "
                 "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(resource, namespace, name) DO "
                 "UPDATE SET version=?4, json=?5"),
    [SQL_REMOVE] = "DELETE FROM objects WHERE resource=?1 AND namespace=?2 AND name=?3",
    [SQL_VERSION] = "UPDATE counters SET value=?1 WHERE name='version'",
};
_Static_assert(FERRY_COUNT(statements) == SQL_COUNT, "one text per statement");

struct database {
    sqlite3 *db;
    sqlite3_stmt *sql[SQL_COUNT];
};

static int fail_sql(struct database *d, struct ferry_error *err, const char *what)
{
    int code = sqlite3_errcode(d->db);

    if (code == SQLITE_BUSY) {
        return ferry_fail(err, FERRY_CONFLICT, "another process has it open");
    }
    if (code == SQLITE_FULL || sqlite3_system_errno(d->db) == ENOSPC) {
        return ferry_fail(err, FERRY_RETRY, "%s: no space is left on the disk of the database",
                          what);
    }
    return ferry_fail(err, FERRY_FATAL, "%s: %s", what, sqlite3_errmsg(d->db));
}

static int run_sql(struct database *d, const char *sql, const char *what, struct ferry_error *err)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail_sql(d, err, what);
}

static int read_number(struct database *d, const char *sql, int64_t *ret, struct ferry_error *err)
{
    sqlite3_stmt *q = NULL;

    if (sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) != SQLITE_OK ||
        sqlite3_step(q) != SQLITE_ROW) {
        int rc = fail_sql(d, err, sql);

        sqlite3_finalize(q);
        return rc;
    }
    *ret = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return 0;
}

static int upgrade(struct database *d, struct ferry_error *err)
{
    int64_t version = 0;
    int rc = read_number(d, "PRAGMA user_version", &version, err);

    if (rc == 0 && version > SCHEMA_VERSION) {
        return ferry_fail(err, FERRY_INVALID,
                          "it has schema version %lld and this program knows up to %d: a newer "
                          "program made it",
                          (long long)version, (int)SCHEMA_VERSION);
    }
    for (; rc == 0 && version < SCHEMA_VERSION; version++) {
        ferry_cleanup_free char *sql = ferry_asprintf("BEGIN IMMEDIATE;%sPRAGMA user_version=%lld;"
                                                      "COMMIT",
                                                      upgrades[version], (long long)version + 1);

        rc = run_sql(d, sql, "upgrading the schema", err);
    }
    return rc;
}

int database_open(const char *path, struct database **ret, struct ferry_error *err)
{
    struct database *d = ferry_xcalloc(1, sizeof(*d));
    int rc = 0;

    if (sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK) {
        rc = fail_sql(d, err, "opening it");
    }
    /* Exclusive: a second server on the same file is refused instead of sharing it. */
    if (rc == 0) {
        rc = run_sql(d,
                     "PRAGMA locking_mode=EXCLUSIVE;"
                     "PRAGMA journal_mode=WAL;"
                     "PRAGMA synchronous=FULL;"
                     "PRAGMA cache_size=-2048;",
                     "setting it up", err);
    }
    rc = rc < 0 ? rc : upgrade(d, err);
    for (int i = 0; rc == 0 && i < SQL_COUNT; i++) {
        if (sqlite3_prepare_v2(d->db, statements[i], -1, &d->sql[i], NULL) != SQLITE_OK) {
            rc = fail_sql(d, err, "preparing a statement");
        }
    }
    if (rc < 0) {
        database_close(d);
        return rc;
    }
    *ret = d;
    return 0;
}

void database_close(struct database *d)
{
    if (!d) {
        return;
    }
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(d->sql[i]);
    }
    sqlite3_close(d->db);
    free(d);
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

int database_load(struct database *d, uint64_t *ret_version,
                  void (*each)(void *ctx, struct entry *take), void *ctx, struct ferry_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t version = 0;
    int rc = read_number(d, "SELECT value FROM counters WHERE name='version'", &version, err);

    if (rc < 0) {
        return rc;
    }
    *ret_version = (uint64_t)version;
    if (sqlite3_prepare_v2(d->db,
                           "SELECT resource, namespace, name, version, json FROM objects "
                           "ORDER BY resource, namespace, name",
                           -1, &q, NULL) != SQLITE_OK) {
        return fail_sql(d, err, "reading the objects");
    }
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const struct api_resource *r = resource_named((const char *)sqlite3_column_text(q, 0));

        if (!r) {
            continue; /* a kind of a newer program: kept on disk, not served */
        }
        each(ctx, entry_new(r, (uint64_t)sqlite3_column_int64(q, 3),
                            (const char *)sqlite3_column_text(q, 1),
                            (const char *)sqlite3_column_text(q, 2),
                            (const char *)sqlite3_column_text(q, 4),
                            (size_t)sqlite3_column_bytes(q, 4)));
    }
    rc = rc == SQLITE_DONE ? 0 : fail_sql(d, err, "reading the objects");
    sqlite3_finalize(q);
    return rc;
}

static int step(struct database *d, enum statement which, struct ferry_error *err, const char *what)
{
    int rc = sqlite3_step(d->sql[which]) == SQLITE_DONE ? 0 : fail_sql(d, err, what);

    sqlite3_reset(d->sql[which]);
    sqlite3_clear_bindings(d->sql[which]);
    return rc;
}

static int write_row(struct database *d, const struct database_row *row, struct ferry_error *err)
{
    const struct entry *e = row->entry;
    enum statement which = row->remove ? SQL_REMOVE : SQL_PUT;
    sqlite3_stmt *q = d->sql[which];
    char resource[256];
    int n = snprintf(resource, sizeof(resource), "%s/%s", e->resource->group, e->resource->plural);

    sqlite3_bind_text(q, 1, resource, n, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, e->ns, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, e->name, -1, SQLITE_STATIC);
    if (!row->remove) {
        sqlite3_bind_int64(q, 4, (sqlite3_int64)e->version);
        sqlite3_bind_text(q, 5, e->json, (int)e->json_len, SQLITE_STATIC);
    }
    return step(d, which, err, row->remove ? "removing an object" : "writing an object");
}

int database_write(struct database *d, const struct database_row *rows, size_t n, uint64_t version,
                   struct ferry_error *err)
{
    int rc = run_sql(d, "BEGIN IMMEDIATE", "beginning a transaction", err);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = write_row(d, &rows[i], err);
    }
    if (rc == 0) {
        sqlite3_bind_int64(d->sql[SQL_VERSION], 1, (sqlite3_int64)version);
        rc = step(d, SQL_VERSION, err, "writing the resource version");
    }
    if (rc == 0) {
        rc = run_sql(d, "COMMIT", "committing", err);
    }
    if (rc < 0 && !sqlite3_get_autocommit(d->db)) {
        sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}
