/* A node's certificates on disk: whenever whoever renews them dies, what is there fits together
 * after the next start. */
#include "lib/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "handler/node/cert_files.h"
#include "handler/node/renewal.h"

struct place {
    char dir[64], pki[80], kubeconfig[96];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    snprintf(p->dir, sizeof(p->dir), "/tmp/ferry-renewal-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->pki, sizeof(p->pki), "%s/pki", p->dir);
    snprintf(p->kubeconfig, sizeof(p->kubeconfig), "%s/node.kubeconfig", p->dir);
    assert_int_equal(mkdir(p->pki, 0700), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    ferry_remove_tree(p->dir, NULL);
    free(p);
    return 0;
}

static void put(const struct place *p, const char *name, const char *text)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", p->pki, name);

    unlink(path);
    if (text) {
        assert_int_equal(ferry_write_file(path, text, strlen(text), 0600, NULL), 0);
    }
}

/* "-" when there is no such file. */
static void expect(const struct place *p, const char *name, const char *text)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", p->pki, name);
    ferry_cleanup_buf struct ferry_buf b = {0};
    int rc = ferry_read_file(path, 1000, &b, NULL);

    assert_string_equal(rc < 0 ? "-" : b.data, text);
}

/* Each row is what a death at one instant leaves: old pair "k1 c1", new one "k2 c2". */
static void deaths(void **state)
{
    static const struct {
        const char *key, *crt, *key_new, *crt_new;
        const char *pair[2];
        int did;
    } cases[] = {
        {"k1", "c1", NULL, NULL, {"k1", "c1"}, 0}, /* before anything */
        {"k1", "c1", "k2", NULL, {"k1", "c1"}, 1}, /* the key was written */
        {"k1", "c1", "k2", "c2", {"k2", "c2"}, 1}, /* and its certificate */
        {"k2", "c1", NULL, "c2", {"k2", "c2"}, 1}, /* the key was put in place */
        {"k2", "c2", NULL, NULL, {"k2", "c2"}, 0}, /* all was done */
    };
    const struct place *p = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put(p, "node.key", cases[i].key);
        put(p, "node.crt", cases[i].crt);
        put(p, "node.key.new", cases[i].key_new);
        put(p, "node.crt.new", cases[i].crt_new);
        print_message("  %zu\n", i);
        assert_int_equal(cert_files_settle(p->pki, "node", NULL), cases[i].did);
        for (int again = 0; again < 2; again++) { /* idempotent */
            expect(p, "node.key", cases[i].pair[0]);
            expect(p, "node.crt", cases[i].pair[1]);
            expect(p, "node.key.new", "-");
            expect(p, "node.crt.new", "-");
            assert_int_equal(cert_files_settle(p->pki, "node", NULL), 0);
        }
    }
}

/* The relay is a user of its own: its key is its own from the first instant. */
static void owners(void **state)
{
    const struct place *p = *state;
    ferry_cleanup_free char *key = ferry_asprintf("%s/relay.key", p->pki);
    ferry_cleanup_free char *waits = ferry_asprintf("%s.new", key);
    struct stat st;

    if (geteuid() != 0) {
        skip();
    }
    put(p, "relay.key", "k1");
    put(p, "relay.crt", "c1");
    assert_int_equal(chown(key, 61200, 61200), 0);
    assert_int_equal(cert_files_stage(p->pki, "relay", "k2", "c2", NULL), 0);
    expect(p, "relay.key", "k1");
    expect(p, "relay.crt", "c1");
    assert_int_equal(stat(waits, &st), 0);
    assert_int_equal(st.st_uid, 61200);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(cert_files_settle(p->pki, "relay", NULL), 1);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_uid, 61200);
    expect(p, "relay.key", "k2");
    expect(p, "relay.crt", "c2");
}

/* What waits from an earlier time is not mixed with what comes. */
static void staged_twice(void **state)
{
    const struct place *p = *state;

    put(p, "node.key", "k1");
    put(p, "node.crt", "c1");
    put(p, "node.crt.new", "c0");
    put(p, "node.key.new", "k0");
    assert_int_equal(cert_files_stage(p->pki, "node", "k2", "c2", NULL), 0);
    expect(p, "node.key", "k0");
    expect(p, "node.crt", "c0");
    assert_int_equal(cert_files_settle(p->pki, "node", NULL), 1);
    expect(p, "node.key", "k2");
    expect(p, "node.crt", "c2");
}

/* A death after the files and before the kubeconfig: the next start tells the other programs by
 * writing it as it is, whatever that is (on Kubernetes it has a certificate of another CA in it);
 * the one after that leaves it alone. */
static void told_late(void **state)
{
    static const char had[] = "    client-certificate-data: QUJD\n    client-key-data: REVG\n";
    const struct place *p = *state;
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct stat before, first, second;

    assert_int_equal(ferry_write_file(p->kubeconfig, had, strlen(had), 0600, NULL), 0);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, p->kubeconfig, old, 0), 0);
    assert_int_equal(stat(p->kubeconfig, &before), 0);
    put(p, "node.key", "k2");
    put(p, "node.crt.new", "c2");
    assert_int_equal(renewal_settle(p->pki, p->kubeconfig, NULL), 0);
    expect(p, "node.crt", "c2");
    assert_int_equal(ferry_read_file(p->kubeconfig, 1000, &text, NULL), 0);
    assert_string_equal(text.data, had);
    assert_int_equal(stat(p->kubeconfig, &first), 0);
    assert_true(first.st_mtim.tv_sec > before.st_mtim.tv_sec);
    assert_int_equal(renewal_settle(p->pki, p->kubeconfig, NULL), 0);
    assert_int_equal(stat(p->kubeconfig, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(deaths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(owners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(staged_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(told_late, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("handler renewal", tests, NULL, NULL);
}
