#include "apiserver/store/database.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/store/seal.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
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
    /* 3: rows of Secrets are encrypted (seal_rows()), which programs before cannot read */
    "",
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
    struct seal *seal;
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

/* ---- Secrets -----------------------------------------------------------------------------------
 */

static bool is_secret(const struct api_resource *r)
{
    return *r->group == '\0' && strcmp(r->plural, "secrets") == 0;
}

/* What a sealed row is bound to. */
static char *about_of(const char *ns, const char *name)
{
    return ferry_asprintf("Secret %s/%s", ns, name);
}

/* The key lies beside the database; it may be a link to where an administrator keeps it. */
static int open_seal(struct database *d, const char *path, struct ferry_error *err)
{
    const char *slash = strrchr(path, '/');
    ferry_cleanup_free char *key =
        ferry_asprintf("%.*ssecrets.key", slash ? (int)(slash - path + 1) : 0, path);
    int64_t sealed = 0;
    int rc = read_number(
        d, "SELECT count(*) FROM objects WHERE resource='/secrets' AND typeof(json)='blob'",
        &sealed, err);

    return rc < 0 ? rc : seal_open(key, sealed == 0, &d->seal, err);
}

static int seal_row(struct database *d, sqlite3_stmt *from, sqlite3_stmt *to,
                    struct ferry_error *err)
{
    const char *ns = (const char *)sqlite3_column_text(from, 0);
    const char *name = (const char *)sqlite3_column_text(from, 1);
    ferry_cleanup_free char *about = about_of(ns, name);
    ferry_cleanup_buf struct ferry_buf sealed = {0};
    int rc = seal_encrypt(d->seal, about, (const char *)sqlite3_column_text(from, 2),
                          (size_t)sqlite3_column_bytes(from, 2), &sealed, err);

    if (rc < 0) {
        return rc;
    }
    sqlite3_bind_text(to, 1, ns, -1, SQLITE_STATIC);
    sqlite3_bind_text(to, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_blob(to, 3, sealed.data, (int)sealed.len, SQLITE_STATIC);
    rc = sqlite3_step(to) == SQLITE_DONE ? 0 : fail_sql(d, err, "encrypting a Secret");
    sqlite3_reset(to);
    sqlite3_clear_bindings(to);
    return rc;
}

/* Those of programs from before. */
static int seal_rows(struct database *d, int *ret_n, struct ferry_error *err)
{
    sqlite3_stmt *from = NULL, *to = NULL;
    int rc = 0, step;

    *ret_n = 0;
    if (sqlite3_prepare_v2(d->db,
                           "SELECT namespace, name, json FROM objects WHERE resource='/secrets' "
                           "AND typeof(json)='text'",
                           -1, &from, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(d->db,
                           "UPDATE objects SET json=?3 WHERE resource='/secrets' AND namespace=?1 "
                           "AND name=?2",
                           -1, &to, NULL) != SQLITE_OK) {
        rc = fail_sql(d, err, "reading the Secrets");
    }
    while (rc == 0 && (step = sqlite3_step(from)) != SQLITE_DONE) {
        rc = step == SQLITE_ROW ? seal_row(d, from, to, err)
                                : fail_sql(d, err, "reading the Secrets");
        *ret_n += rc == 0;
    }
    sqlite3_finalize(from);
    sqlite3_finalize(to);
    return rc;
}

/* All or none, and nothing of what they were is left in the file or its log. */
static int seal_old_rows(struct database *d, struct ferry_error *err)
{
    int n = 0, rc = run_sql(d, "BEGIN IMMEDIATE", "beginning a transaction", err);

    rc = rc < 0 ? rc : seal_rows(d, &n, err);
    if (rc < 0) {
        sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
    }
    rc = run_sql(d, "COMMIT", "encrypting the Secrets", err);
    if (rc == 0 && n) {
        rc = run_sql(d, "VACUUM;PRAGMA wal_checkpoint(TRUNCATE)", "wiping the Secrets that were",
                     err);
        ferry_info("Secrets in the database encrypted", F_INT("secrets", n));
    }
    return rc;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

/* Nobody else's to read, whatever the umask is, and whatever it was when an older program made it.
 * SQLite gives its log the mode of the database. */
static int close_to_others(const char *path, struct ferry_error *err)
{
    ferry_cleanup_free char *log = ferry_asprintf("%s-wal", path);
    ferry_cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || fchmod(fd, 0600) < 0) {
        return ferry_fail_errno(err, errno, "opening it");
    }
    return chmod(log, 0600) < 0 && errno != ENOENT ? ferry_fail_errno(err, errno, "%s", log) : 0;
}

int database_open(const char *path, struct database **ret, struct ferry_error *err)
{
    struct database *d = ferry_xcalloc(1, sizeof(*d));
    int rc = close_to_others(path, err);

    if (rc == 0 && sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                   NULL) != SQLITE_OK) {
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
    rc = rc < 0 ? rc : open_seal(d, path, err);
    rc = rc < 0 ? rc : seal_old_rows(d, err);
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
    seal_close(d->seal);
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

static int load_row(struct database *d, sqlite3_stmt *q, const struct api_resource *r,
                    void (*each)(void *ctx, struct entry *take), void *ctx, struct ferry_error *err)
{
    const char *ns = (const char *)sqlite3_column_text(q, 1);
    const char *name = (const char *)sqlite3_column_text(q, 2);
    uint64_t version = (uint64_t)sqlite3_column_int64(q, 3);
    ferry_cleanup_buf struct ferry_buf open = {0};

    if (sqlite3_column_type(q, 4) != SQLITE_BLOB) {
        each(ctx, entry_new(r, version, ns, name, (const char *)sqlite3_column_text(q, 4),
                            (size_t)sqlite3_column_bytes(q, 4)));
        return 0;
    }
    ferry_cleanup_free char *about = about_of(ns, name);
    int rc = seal_decrypt(d->seal, about, sqlite3_column_blob(q, 4),
                          (size_t)sqlite3_column_bytes(q, 4), &open, err);
    if (rc == 0) {
        each(ctx, entry_new(r, version, ns, name, open.data, open.len));
        explicit_bzero(open.data, open.len);
    }
    return rc;
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
    rc = 0;
    for (int got; rc == 0 && (got = sqlite3_step(q)) != SQLITE_DONE;) {
        const struct api_resource *r =
            got == SQLITE_ROW ? resource_named((const char *)sqlite3_column_text(q, 0)) : NULL;

        if (got != SQLITE_ROW) {
            rc = fail_sql(d, err, "reading the objects");
        } else if (r) { /* else a kind of a newer program: kept on disk, not served */
            rc = load_row(d, q, r, each, ctx, err);
        }
    }
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
    ferry_cleanup_buf struct ferry_buf sealed = {0};

    if (!row->remove && is_secret(e->resource)) {
        ferry_cleanup_free char *about = about_of(e->ns, e->name);
        int rc = seal_encrypt(d->seal, about, e->json, e->json_len, &sealed, err);

        if (rc < 0) {
            return rc;
        }
    }
    sqlite3_bind_text(q, 1, resource, n, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, e->ns, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 3, e->name, -1, SQLITE_STATIC);
    if (!row->remove) {
        sqlite3_bind_int64(q, 4, (sqlite3_int64)e->version);
        if (sealed.len) {
            sqlite3_bind_blob(q, 5, sealed.data, (int)sealed.len, SQLITE_STATIC);
        } else {
            sqlite3_bind_text(q, 5, e->json, (int)e->json_len, SQLITE_STATIC);
        }
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
