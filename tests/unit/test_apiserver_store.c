/* The store and the hub: versions, order, windows, restarts. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/json.h"
#include "apiserver/store/hub.h"
#include "apiserver/store/store.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

static char dir[] = "/tmp/ferry-store-XXXXXX";
static char *database;

static const struct api_resource *pods(void)
{
    return api_resource_of_kind(API_KIND_POD);
}

static struct store *open_store(void)
{
    struct ferry_error err = {0};
    struct store *s = NULL;

    if (store_open(database, &s, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static void put(struct store *s, const char *ns, const char *name, const char *mark)
{
    ferry_cleanup_free char *json =
        ferry_asprintf("{\"metadata\":{\"name\":\"%s\"},\"mark\":\"%s\"}", name, mark);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_doc_mut_copy(doc, NULL);
    struct ferry_error err = {0};

    store_begin(s);
    if (store_put(s, pods(), ns, name, m, &err) < 0 || store_commit(s, NULL, &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

static void take_away(struct store *s, const char *ns, const char *name)
{
    struct ferry_error err = {0};

    store_begin(s);
    cleanup_entry struct entry *e = store_get(s, pods(), ns, name);
    assert_non_null(e);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_doc_mut_copy(doc, NULL);
    assert_int_equal(store_remove(s, e, m, &err), 0);
    assert_int_equal(store_commit(s, NULL, &err), 0);
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    database = ferry_asprintf("%s/api.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(database);
    return ferry_remove_tree(dir, NULL);
}

static void objects_and_versions(void **state)
{
    struct store *s = open_store();
    uint64_t start = store_version(s);

    (void)state;
    put(s, "b", "y", "1");
    put(s, "a", "z", "2");
    put(s, "b", "x", "3");
    put(s, "b", "y", "4");
    assert_int_equal(store_version(s), start + 4);
    cleanup_entry struct entry *e = store_get(s, pods(), "b", "y");
    ferry_cleanup_free char *version =
        ferry_asprintf("\"resourceVersion\":\"%llu\"", (unsigned long long)start + 4);
    assert_non_null(strstr(e->json, version));
    assert_non_null(strstr(e->json, "\"mark\":\"4\""));
    assert_null(store_get(s, pods(), "a", "y"));

    cleanup_entry_list struct entry_list all = {0}, one = {0};
    store_list(s, pods(), NULL, &all);
    store_list(s, pods(), "b", &one);
    assert_int_equal(all.n, 3);
    assert_string_equal(all.items[0]->name, "z");
    assert_string_equal(all.items[1]->name, "x");
    assert_int_equal(one.n, 2);
    assert_int_equal(one.version, start + 4);
    take_away(s, "b", "x");
    assert_null(store_get(s, pods(), "b", "x"));
    store_close(s);

    /* all of it is there after a restart, and versions go on */
    s = open_store();
    assert_int_equal(store_version(s), start + 5);
    entry_list_done(&all);
    store_list(s, pods(), NULL, &all);
    assert_int_equal(all.n, 2);
    put(s, "a", "z", "5");
    assert_int_equal(store_version(s), start + 6);
    store_close(s);
}

static void put_move(struct store *s, const char *ns, const char *name, const char *vmi)
{
    ferry_cleanup_free char *json = ferry_asprintf(
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"vmiName\":\"a-label\"}},\"spec\":{"
        "\"vmiName\":\"%s\"}}",
        name, vmi);
    api_cleanup_doc yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_doc_mut_copy(doc, NULL);
    struct ferry_error err = {0};

    store_begin(s);
    assert_int_equal(store_put(s, api_resource_of_kind(API_KIND_MIGRATION), ns, name, m, &err), 0);
    assert_int_equal(store_commit(s, NULL, &err), 0);
}

/* The names of what is found, one after the other. */
static char *found(struct store *s, const char *ns, const char *vmi)
{
    cleanup_entry_list struct entry_list list = {0};
    struct ferry_buf b = {0};

    store_find(s, api_resource_of_kind(API_KIND_MIGRATION), ns, vmi, &list);
    for (size_t i = 0; i < list.n; i++) {
        ferry_buf_puts(&b, list.items[i]->name);
    }
    return ferry_buf_take(&b);
}

static void check_found(struct store *s, const char *ns, const char *vmi, const char *want)
{
    ferry_cleanup_free char *names = found(s, ns, vmi);

    assert_string_equal(names, want);
}

static void migrations_of_a_vmi(void **state)
{
    struct store *s = open_store();

    (void)state;
    put_move(s, "f", "3", "web");
    put_move(s, "f", "1", "web");
    put_move(s, "f", "2", "db");
    put_move(s, "g", "4", "web");
    put_move(s, "f", "3", "web"); /* again */
    check_found(s, "f", "web", "13");
    check_found(s, "f", "db", "2");
    check_found(s, "g", "web", "4");
    check_found(s, "g", "db", "");
    check_found(s, "f", "we", "");
    check_found(s, "f", "a-label", "");
    put_move(s, "f", "1", "db");
    check_found(s, "f", "web", "3");
    check_found(s, "f", "db", "12");
    store_close(s);
    s = open_store();
    check_found(s, "f", "db", "12");
    store_close(s);
}

static void aborted_is_not_there(void **state)
{
    struct store *s = open_store();
    uint64_t start = store_version(s);
    api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_mut_doc_new(NULL);
    struct ferry_error err;

    (void)state;
    yyjson_mut_doc_set_root(m, yyjson_mut_obj(m));
    yyjson_mut_obj_add_obj(m, yyjson_mut_doc_get_root(m), "metadata");
    store_begin(s);
    assert_int_equal(store_put(s, pods(), "q", "q", m, &err), 0);
    assert_null(store_get(s, pods(), "q", "q")); /* not before the commit */
    store_abort(s, NULL);
    assert_int_equal(store_version(s), start);
    put(s, "q", "r", "");
    assert_int_equal(store_version(s), start + 1);
    store_close(s);
}

static void one_owner(void **state)
{
    struct store *s = open_store(), *second = NULL;
    struct ferry_error err = {0};

    (void)state;
    assert_int_equal(store_open(database, &second, &err), -FERRY_CONFLICT);
    assert_non_null(strstr(err.msg, "another process has it open"));
    store_close(s);
    assert_true(store_open("/nonexistent/dir/api.db", &second, &err) < 0);
    assert_non_null(strstr(err.msg, "database /nonexistent/dir/api.db"));
}

static void events_in_order(void **state)
{
    struct store *s = open_store();
    uint64_t start = store_version(s);
    struct hub *hub = store_hub(s);
    struct hub_batch b;

    (void)state;
    put(s, "e", "a", "1");
    put(s, "e", "a", "2");
    take_away(s, "e", "a");
    assert_int_equal(hub_wait(hub, pods(), start, 1000, &b), 0);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.events[0].type, HUB_ADDED);
    assert_null(b.events[0].before);
    assert_int_equal(b.events[1].type, HUB_MODIFIED);
    assert_non_null(strstr(b.events[1].before->json, "\"mark\":\"1\""));
    assert_int_equal(b.events[2].type, HUB_DELETED);
    assert_int_equal(b.events[2].now->version, start + 3);
    assert_int_equal(b.version, start + 3);
    hub_batch_done(&b);
    /* resume in the middle; other resources are passed over; nothing new */
    assert_int_equal(hub_wait(hub, pods(), start + 2, 0, &b), 0);
    assert_int_equal(b.n, 1);
    hub_batch_done(&b);
    assert_int_equal(hub_wait(hub, api_resource_of_kind(API_KIND_NODE), start, 0, &b), 0);
    assert_int_equal(b.n, 0);
    assert_int_equal(b.version, start + 3);
    assert_int_equal(hub_wait(hub, pods(), start + 3, 10, &b), 0);
    assert_int_equal(b.n, 0);
    /* from before the start, and from the future */
    assert_int_equal(hub_wait(hub, pods(), start - 1, 0, &b), -1);
    assert_int_equal(hub_wait(hub, pods(), start + 4, 0, &b), -1);
    store_close(s);
}

static void windows_move_on(void **state)
{
    struct hub *hub = hub_new(100, 4, 1 << 20);
    struct hub_batch b;

    (void)state;
    for (uint64_t v = 101; v <= 110; v++) {
        cleanup_entry struct entry *e = entry_new(pods(), v, "n", "p", "{}", 2);

        hub_publish(hub, HUB_ADDED, e, NULL);
    }
    assert_int_equal(hub_wait(hub, pods(), 105, 0, &b), -1);
    assert_int_equal(hub_wait(hub, pods(), 106, 0, &b), 0);
    assert_int_equal(b.n, 4);
    assert_int_equal(b.events[0].now->version, 107);
    hub_batch_done(&b);
    hub_free(hub);

    /* by size: the newest stays whatever it weighs */
    hub = hub_new(0, 100, 10);
    for (uint64_t v = 1; v <= 3; v++) {
        cleanup_entry struct entry *e = entry_new(pods(), v, "n", "p", "123456789012", 12);

        hub_publish(hub, HUB_ADDED, e, NULL);
    }
    assert_int_equal(hub_wait(hub, pods(), 1, 0, &b), -1);
    assert_int_equal(hub_wait(hub, pods(), 2, 0, &b), 0);
    assert_int_equal(b.n, 1);
    hub_batch_done(&b);
    hub_free(hub);
}

enum { WRITES = 200, WATCHERS = 4 };

struct watcher {
    struct store *store;
    uint64_t from;
    int seen;
    bool gap;
};

static void *watch(void *arg)
{
    struct watcher *w = arg;
    uint64_t at = w->from;

    while (w->seen < WRITES && !w->gap) {
        cleanup_hub_batch struct hub_batch b = {0};

        if (hub_wait(store_hub(w->store), pods(), at, 1000, &b) < 0) {
            w->gap = true;
            break;
        }
        for (size_t i = 0; i < b.n; i++) {
            w->gap = w->gap || b.events[i].now->version != at + 1;
            at = b.events[i].now->version;
            w->seen++;
        }
    }
    return NULL;
}

static void *write_some(void *arg)
{
    struct watcher *w = arg;

    for (int i = 0; i < WRITES / 2; i++) {
        char name[32];

        snprintf(name, sizeof(name), "w-%d-%d", w->seen, i % 7);
        put(w->store, "t", name, "x");
    }
    return NULL;
}

static void watchers_miss_nothing(void **state)
{
    struct store *s = open_store();
    struct watcher watchers[WATCHERS], writers[2] = {{.store = s}, {.store = s, .seen = 1}};
    pthread_t threads[WATCHERS + 2];

    (void)state;
    for (int i = 0; i < WATCHERS; i++) {
        watchers[i] = (struct watcher){.store = s, .from = store_version(s)};
        assert_int_equal(pthread_create(&threads[i], NULL, watch, &watchers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[WATCHERS + i], NULL, write_some, &writers[i]), 0);
    }
    for (int i = 0; i < WATCHERS + 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < WATCHERS; i++) {
        assert_int_equal(watchers[i].seen, WRITES);
        assert_false(watchers[i].gap);
    }
    store_close(s);
}

/* A second writer decides on what the first has committed, though it is not on disk yet. */
static void *count_up(void *arg)
{
    struct store *s = arg;

    for (int i = 0; i < WRITES / 4; i++) {
        struct ferry_error err = {0};

        store_begin(s);
        cleanup_entry struct entry *e = store_get(s, pods(), "g", "counter");
        cleanup_entry_list struct entry_list list = {0};
        store_list(s, pods(), "g", &list);
        api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
        api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_doc_mut_copy(doc, NULL);
        ferry_cleanup_free char *mark = ferry_asprintf(
            "%d", atoi(api_json_str(yyjson_doc_get_root(doc), "/mark")) + (list.n == 1 ? 1 : 100));
        yyjson_mut_obj_put(yyjson_mut_doc_get_root(m), yyjson_mut_str(m, "mark"),
                           yyjson_mut_strcpy(m, mark));
        if (store_put(s, pods(), "g", "counter", m, &err) < 0 || store_commit(s, NULL, &err) < 0) {
            return s;
        }
    }
    return NULL;
}

static void writers_share_commits(void **state)
{
    struct store *s = open_store();
    pthread_t threads[8];
    void *failed;

    (void)state;
    put(s, "g", "counter", "0");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, s), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    cleanup_entry struct entry *e = store_get(s, pods(), "g", "counter");
    ferry_cleanup_free char *mark = ferry_asprintf("\"mark\":\"%d\"", 8 * (WRITES / 4));
    assert_non_null(strstr(e->json, mark));
    store_close(s);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void old_schemas_are_upgraded(void **state)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/old.db", dir);
    struct ferry_error err = {0};
    struct store *s = NULL;

    (void)state;
    run_sql(path, "CREATE TABLE objects(resource TEXT NOT NULL, namespace TEXT NOT NULL,"
                  " name TEXT NOT NULL, version INTEGER NOT NULL, json TEXT NOT NULL,"
                  " PRIMARY KEY(resource, namespace, name)) WITHOUT ROWID;"
                  "CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
                  "INSERT INTO counters VALUES('version', 7);"
                  "INSERT INTO objects VALUES('/pods', 'o', 'p', 7, '{\"metadata\":{}}');"
                  "PRAGMA user_version=1;");
    assert_int_equal(store_open(path, &s, &err), 0);
    assert_int_equal(store_version(s), 7);
    cleanup_entry struct entry *e = store_get(s, pods(), "o", "p");
    assert_non_null(e);
    put(s, "o", "q", "1");
    store_close(s);
    run_sql(path, "PRAGMA user_version=99");
    assert_int_equal(store_open(path, &s, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "a newer program made it"));
}

/* ---- what is answered is on disk ---------------------------------------------------------------
 */

static atomic_int syncs;
static atomic_bool disk_hangs, disk_fails;

/* What SQLite calls: this one, because the program comes before its libraries. */
static int sync_by(long how, int fd)
{
    atomic_fetch_add(&syncs, 1);
    while (atomic_load(&disk_hangs)) {
        ferry_sleep_ms(1);
    }
    if (atomic_load(&disk_fails)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(how, fd);
}

int fdatasync(int fd)
{
    return sync_by(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return sync_by(SYS_fsync, fd);
}

static void every_answer_was_synced(void **state)
{
    struct store *s = open_store();

    (void)state;
    for (int i = 0; i < 20; i++) {
        int before = atomic_load(&syncs);

        put(s, "synced", "x", i % 2 ? "odd" : "even");
        assert_true(atomic_load(&syncs) > before);
    }
    store_close(s);
}

struct looker {
    struct store *s;
    pthread_t thread;
    bool writes;      /* else: looks inside a transaction, changes nothing */
    bool saw;         /* the object, as it was inside the transaction */
    bool saw_outside; /* the same, by a reader, right after it ended */
    int rc;
    atomic_bool over;
};

static void *look(void *arg)
{
    struct looker *l = arg;
    struct ferry_error err = {0};

    store_begin(l->s);
    if (l->writes) {
        api_cleanup_mut_doc yyjson_mut_doc *m = yyjson_mut_doc_new(NULL);

        yyjson_mut_doc_set_root(m, yyjson_mut_obj(m));
        yyjson_mut_obj_add_obj(m, yyjson_mut_doc_get_root(m), "metadata");
        l->rc = store_put(l->s, pods(), "seen", "x", m, &err);
        l->rc = store_commit(l->s, NULL, &err);
    } else {
        cleanup_entry struct entry *e = store_get(l->s, pods(), "seen", "x");

        l->saw = e != NULL;
        l->rc = store_abort(l->s, &err);
    }
    cleanup_entry struct entry *after = store_get(l->s, pods(), "seen", "x");
    l->saw_outside = after != NULL;
    atomic_store(&l->over, true);
    return NULL;
}

/* One writes, the other finds it done already: both are answered when it is on disk, or neither. */
static void what_was_seen_is_on_disk(void **state)
{
    struct store *s = open_store();

    (void)state;
    for (int fails = 1; fails >= 0; fails--) {
        struct looker writer = {.s = s, .writes = true}, looker = {.s = s};
        int before = atomic_load(&syncs);

        atomic_store(&disk_hangs, true);
        pthread_create(&writer.thread, NULL, look, &writer);
        while (atomic_load(&syncs) == before) {
            ferry_sleep_ms(1);
        }
        pthread_create(&looker.thread, NULL, look, &looker);
        ferry_sleep_ms(50); /* long enough to answer too early */
        assert_false(atomic_load(&looker.over));
        assert_false(atomic_load(&writer.over));
        atomic_store(&disk_fails, fails);
        atomic_store(&disk_hangs, false);
        pthread_join(writer.thread, NULL);
        pthread_join(looker.thread, NULL);
        atomic_store(&disk_fails, false);
        assert_true(looker.saw);
        assert_int_equal(looker.rc < 0, fails);
        assert_int_equal(writer.rc < 0, fails);
        assert_int_equal(looker.saw_outside, !fails);
    }
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_versions),     cmocka_unit_test(migrations_of_a_vmi),
        cmocka_unit_test(aborted_is_not_there),     cmocka_unit_test(one_owner),
        cmocka_unit_test(events_in_order),          cmocka_unit_test(windows_move_on),
        cmocka_unit_test(watchers_miss_nothing),    cmocka_unit_test(writers_share_commits),
        cmocka_unit_test(old_schemas_are_upgraded), cmocka_unit_test(every_answer_was_synced),
        cmocka_unit_test(what_was_seen_is_on_disk),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
