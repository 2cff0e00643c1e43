/* Secrets at rest: what is in the files of a database, and what does not open. */
#include "lib/unit.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/json.h"
#include "api/names.h"
#include "apiserver/store/store.h"
#include "base/fd.h"
#include "base/str.h"

static char dir[] = "/tmp/ferry-seal-XXXXXX";
static char *database, *key;

#define MARK "hidden-4f1c"

static const struct api_resource *secrets(void)
{
    return api_resource_find("", "v1", "secrets");
}

static void put(struct store *s, const char *name, const char *data)
{
    ferry_cleanup_free char *json =
        ferry_asprintf("{\"metadata\":{\"name\":\"%s\"},\"data\":\"%s\"}", name, data);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_doc_mut_copy(doc, NULL);
    struct ferry_error err = {0};

    store_begin(s);
    if (store_put(s, secrets(), "d", name, m, &err) < 0 || store_commit(s, NULL, &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

static struct store *opened(void)
{
    struct store *s = NULL;
    struct ferry_error err = {0};

    if (store_open(database, &s, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static void refused(const char *words)
{
    struct store *s = NULL;
    struct ferry_error err = {0};

    assert_int_equal(store_open(database, &s, &err), -FERRY_INVALID);
    if (!strstr(err.msg, words)) {
        fail_msg("'%s' does not say '%s'", err.msg, words);
    }
}

static void run_sql(const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    sqlite3_close(db);
}

/* Whether the words are in the database or its log. */
static bool holds(const char *words)
{
    static const char *const ends[] = {"", "-wal", "-journal"};
    bool found = false;

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s%s", database, ends[i]);
        ferry_cleanup_buf struct ferry_buf text = {0};

        if (ferry_read_file(path, 64 << 20, &text, NULL) == 0 && text.len) {
            found = found || memmem(text.data, text.len, words, strlen(words));
        }
    }
    return found;
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static int fresh(void **state)
{
    (void)state;
    unlink(database);
    unlink(key);
    return 0;
}

static void assert_data(struct store *s, const char *name, const char *data)
{
    cleanup_entry struct entry *e = store_get(s, secrets(), "d", name);

    assert_non_null(e);
    assert_non_null(strstr(e->json, data));
}

static void they_are_not_in_its_files(void **state)
{
    (void)state;
    umask(0);
    struct store *s = opened();
    ferry_cleanup_free char *log = ferry_asprintf("%s-wal", database);

    put(s, "one", MARK);
    assert_false(holds(MARK));
    assert_true(holds("one")); /* its name is no secret */
    assert_int_equal(mode_of(database), 0600);
    assert_int_equal(mode_of(log), 0600);
    assert_int_equal(mode_of(key), 0600);
    store_close(s);
    s = opened();
    assert_data(s, "one", MARK);
    put(s, "one", "changed");
    store_close(s);
    assert_false(holds(MARK));
    s = opened();
    assert_data(s, "one", "changed");
    store_close(s);
}

static void those_of_before_are_encrypted(void **state)
{
    (void)state;
    run_sql("CREATE TABLE objects(resource TEXT NOT NULL, namespace TEXT NOT NULL,"
            " name TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,"
            " PRIMARY KEY(resource, namespace, name));"
            "CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
            "INSERT INTO counters VALUES('version', 7);"
            "INSERT INTO objects VALUES('/secrets', 'd', 'old', 7, '{\"data\":\"" MARK "\"}');"
            "INSERT INTO objects VALUES('/pods', 'd', 'p', 7, '{\"metadata\":{}}');"
            "PRAGMA user_version=2;");
    assert_int_equal(chmod(database, 0644), 0);
    assert_true(holds(MARK));
    struct store *s = opened();
    assert_data(s, "old", MARK);
    assert_false(holds(MARK));
    assert_int_equal(mode_of(database), 0600);
    store_close(s);
    assert_false(holds(MARK));
    s = opened();
    assert_data(s, "old", MARK);
    store_close(s);
}

static void a_row_opens_in_its_place_only(void **state)
{
    (void)state;
    struct store *s = opened();

    put(s, "mine", "a");
    put(s, "theirs", MARK);
    store_close(s);
    run_sql("UPDATE objects SET json=(SELECT json FROM objects WHERE name='theirs') "
            "WHERE name='mine'");
    refused("Secret d/mine cannot be decrypted");
}

static void without_the_key_it_is_said(void **state)
{
    (void)state;
    store_close(opened());
    assert_int_equal(unlink(key), 0); /* nothing needs it yet */
    struct store *s = opened();
    put(s, "one", MARK);
    store_close(s);
    ferry_cleanup_buf struct ferry_buf right = {0};
    assert_int_equal(ferry_read_file(key, 4096, &right, NULL), 0);
    assert_int_equal(unlink(key), 0);
    refused("secrets.key is missing");
    assert_int_equal(ferry_write_file(key, "short", 5, 0600, NULL), 0);
    refused("a key has 32 bytes, not 5");
    assert_int_equal(ferry_write_file(key, "another key, which is as long...", 32, 0600, NULL), 0);
    refused("cannot be decrypted with");
    assert_int_equal(ferry_write_file(key, right.data, right.len, 0600, NULL), 0);
    s = opened();
    assert_data(s, "one", MARK);
    store_close(s);
}

/* Each byte of what is stored counts. */
static void what_was_changed_does_not_open(void **state)
{
    (void)state;
    struct store *s = opened();

    put(s, "one", MARK);
    store_close(s);
    static const char *const changes[] = {
        "substr(json, 1, length(json) - 1)",
        "substr(json, 1, 20)",
        "x''",
        "cast(substr(json, 1, 30) || x'00' || substr(json, 32) AS BLOB)",
        "cast(x'00' || substr(json, 2) AS BLOB)",
    };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        ferry_cleanup_free char *sql =
            ferry_asprintf("CREATE TABLE kept AS SELECT json FROM objects WHERE name='one';"
                           "UPDATE objects SET json=%s WHERE name='one'",
                           changes[i]);

        run_sql(sql);
        refused("Secret d/one");
        run_sql("UPDATE objects SET json=(SELECT json FROM kept) WHERE name='one';DROP TABLE kept");
    }
    s = opened();
    assert_data(s, "one", MARK);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(they_are_not_in_its_files, fresh),
        cmocka_unit_test_setup(those_of_before_are_encrypted, fresh),
        cmocka_unit_test_setup(a_row_opens_in_its_place_only, fresh),
        cmocka_unit_test_setup(without_the_key_it_is_said, fresh),
        cmocka_unit_test_setup(what_was_changed_does_not_open, fresh),
    };

    if (!mkdtemp(dir)) {
        return 1;
    }
    database = ferry_asprintf("%s/api.db", dir);
    key = ferry_asprintf("%s/secrets.key", dir);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    ferry_remove_tree(dir, NULL);
    free(database);
    free(key);
    return rc;
}
