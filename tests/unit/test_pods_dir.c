/* What of a pod's directory is bounded, and which paths of the host it may name. */
#include "lib/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "pods/host_path.h"
#include "pods/log_trim.h"

#define MIB (INT64_C(1) << 20)

static void heads(void **state)
{
    static const struct {
        const char *name;
        int64_t length, taken, head;
    } cases[] = {
        {"nothing", 0, 0, 0},
        {"short", 1000, 4096, 0},
        {"as long as it may be", 3 * MIB, 3 * MIB, 0},
        {"longer", 3 * MIB + 4096, 3 * MIB + 4096, MIB + 4096},
        {"not at a block's end", 4 * MIB + 5, 4 * MIB + 4096, 2 * MIB},
        {"cut before, and short again", 100 * MIB, 2 * MIB, 0},
        {"cut before, and long again", 100 * MIB, 4 * MIB, 98 * MIB},
        {"long by a hole alone", INT64_MAX, 4096, 0},
        {"as long as can be, and full", INT64_MAX, 8 * MIB, INT64_MAX / 4096 * 4096 - 2 * MIB},
        {"more than its length by what was kept for it", MIB, 8 * MIB, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].name);
        assert_true(log_trim_head(cases[i].length, cases[i].taken) == cases[i].head);
    }
}

static void write_many(const char *path, int flags, char what, size_t mib)
{
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    static char block[1 << 20];

    memset(block, what, sizeof(block));
    assert_true(fd >= 0);
    for (size_t i = 0; i < mib; i++) {
        assert_int_equal(ferry_write_all(fd, block, sizeof(block), NULL), 0);
    }
}

static int64_t taken(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_blocks * 512;
}

/* The end is there, at the same place; what a guest put in a log's place is left alone. */
static void trims(void **state)
{
    char dir[] = "/dev/shm/ferry-pod-XXXXXX", byte = 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    ferry_cleanup_free char *console = ferry_asprintf("%s/console", dir);
    ferry_cleanup_free char *out = ferry_asprintf("%s/out", dir);
    ferry_cleanup_free char *serial = ferry_asprintf("%s/serial.log", console);
    ferry_cleanup_free char *log = ferry_asprintf("%s/log", out);
    ferry_cleanup_free char *other = ferry_asprintf("%s/other", dir);
    assert_int_equal(mkdir(console, 0700) | mkdir(out, 0700), 0);
    write_many(serial, O_APPEND, 'a', 6);
    write_many(log, O_APPEND, 'b', 2);
    log_trim_pod(dir);
    assert_true(taken(serial) <= LOG_TRIM_MAX);
    assert_int_equal(taken(log), 2 * MIB);
    write_many(serial, O_APPEND, 'z', 1);
    ferry_cleanup_fd int fd = open(serial, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, 6 * MIB - 1), 1);
    assert_int_equal(byte, 'a');
    assert_int_equal(pread(fd, &byte, 1, 7 * MIB - 1), 1);
    assert_int_equal(byte, 'z');

    write_many(other, 0, 'o', 6);
    assert_int_equal(unlink(serial) | symlink("../other", serial), 0);
    log_trim_pod(dir);
    assert_int_equal(taken(other), 6 * MIB);
    assert_int_equal(unlink(serial) | mkfifo(serial, 0600), 0);
    log_trim_pod(dir);
    assert_int_equal(ferry_remove_tree(dir, NULL), 0);
}

static void roots(void **state)
{
    static const struct {
        const char *roots, *path;
        const char *root; /* NULL = none */
    } cases[] = {
        {"/srv", "/srv/vm", "/srv"},
        {"/srv", "/srv", "/srv"},
        {"/srv/", "//srv///vm/", "/srv/"},
        {"/srv:/data", "/data/x", "/data"},
        {":/data:", "/data/x", "/data"},
        {"/", "/etc", "/"},
        {"/srv/./vm", "/srv/vm/a", "/srv/./vm"},
        {"/srv", "/srv2", NULL},
        {"/srv/vm", "/srv", NULL},
        {"/srv", "/srv/../etc", NULL},
        {"/srv", "/srv/..", NULL},
        {"/srv", "/srv/vm/../../etc", NULL},
        {"/srv", "/srv/..vm", "/srv"},
        {"/srv", "srv/vm", NULL},
        {"srv", "/srv/vm", NULL},
        {"/srv/..", "/etc", NULL},
        {"", "/srv", NULL},
        {NULL, "/srv", NULL},
        {"/srv", NULL, NULL},
        {"/srv", "", NULL},
        {HOST_PATH_ROOTS, "/data/vm", "/data"},
        {HOST_PATH_ROOTS, "/var/lib/ferry/disks/vm", "/var/lib/ferry/disks"},
        {HOST_PATH_ROOTS, "/var/lib/ferry/pki", NULL},
        {HOST_PATH_ROOTS, "/etc", NULL},
        {HOST_PATH_ROOTS, "/run/ferry/pods", NULL},
        {HOST_PATH_ROOTS, "/dev/sda", NULL},
        {HOST_PATH_ROOTS, "/", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *at = NULL;
        size_t n = host_path_root(cases[i].roots, cases[i].path, &at);

        print_message("  %s: %s\n", cases[i].roots ? cases[i].roots : "(none)",
                      cases[i].path ? cases[i].path : "(none)");
        assert_int_equal(n, cases[i].root ? strlen(cases[i].root) : 0);
        assert_true(n == 0 || memcmp(at, cases[i].root, n) == 0);
    }
}

enum { GUEST = 1879048200 };

/* Links and directories of guests on the way are found, whatever is behind them. */
static void walks(void **state)
{
    static const struct {
        const char *path;
        enum host_path_kind kind;
        int rc;
    } cases[] = {
        {"/data/plain", HOST_PATH_DIRECTORY, 0},
        {"/data/guest", HOST_PATH_DIRECTORY, 0},
        {"//data/./guest/", HOST_PATH_DIRECTORY, 0},
        {"/data/nothing", HOST_PATH_DIRECTORY, 0},
        {"/data/new/deep/vm", HOST_PATH_MADE, 0},
        {"/srv/new", HOST_PATH_MADE, 0},
        {"/data/link", HOST_PATH_DEVICE, 0},
        {"/data/link", HOST_PATH_DIRECTORY, -FERRY_DENIED},
        {"/data/link/x", HOST_PATH_DIRECTORY, -FERRY_DENIED},
        {"/data/link/x", HOST_PATH_MADE, -FERRY_DENIED},
        {"/data/guest/x", HOST_PATH_DIRECTORY, -FERRY_DENIED},
        {"/data/guest/x", HOST_PATH_MADE, -FERRY_DENIED},
        {"/data/guest/x", HOST_PATH_DEVICE, -FERRY_DENIED},
        {"/data/shared/x", HOST_PATH_DIRECTORY, -FERRY_DENIED},
        {"/data/open/x", HOST_PATH_DIRECTORY, -FERRY_DENIED},
        {"/etc", HOST_PATH_DIRECTORY, -FERRY_DENIED},
    };
    char top[] = "/tmp/ferry-paths-XXXXXX";
    const struct {
        const char *name;
        mode_t mode;
        uid_t uid;
        gid_t gid;
    } made[] = {{"data", 0755, 0, 0},
                {"data/plain", 0755, 0, 0},
                {"data/guest", 0755, GUEST, GUEST},
                {"data/shared", 02775, 0, GUEST},
                {"data/open", 01777, 0, 0}};

    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_non_null(mkdtemp(top));
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", top, made[i].name);

        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chown(path, made[i].uid, made[i].gid), 0);
        assert_int_equal(chmod(path, made[i].mode), 0);
    }
    ferry_cleanup_free char *link = ferry_asprintf("%s/data/link", top);
    assert_int_equal(symlink("/etc", link), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};

        print_message("  %s\n", cases[i].path);
        assert_int_equal(host_path_check(top, NULL, cases[i].path, cases[i].kind, &err),
                         cases[i].rc);
        assert_true(cases[i].rc == 0 || strstr(err.msg, cases[i].path));
    }
    ferry_cleanup_free char *deep = ferry_asprintf("%s/data/new/deep", top);
    assert_int_equal(access(deep, F_OK), 0);
    assert_int_equal(ferry_remove_tree(top, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(trims),
        cmocka_unit_test(roots),
        cmocka_unit_test(walks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
