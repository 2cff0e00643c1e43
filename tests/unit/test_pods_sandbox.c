/* The command line of a sandbox, and the names of its directory. */
#include "lib/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "pods/sandbox.h"
#include "pods/sandbox_args.h"

static bool has_words(const struct sandbox_args *a, const char *one, const char *two,
                      const char *three)
{
    for (size_t i = 0; i + 2 < a->n; i++) {
        if (ferry_streq(a->argv[i], one) && (!two || ferry_streq(a->argv[i + 1], two)) &&
            (!three || ferry_streq(a->argv[i + 2], three))) {
            return true;
        }
    }
    return false;
}

static void command_line(void **state)
{
    const char *const args[] = {"--uid", "1"};
    const struct sandbox_disks disks = {
        {{(char *)"/h/a", (char *)"root", .device = false},
         {(char *)"/h/b", (char *)"iso", .readonly = true},
         {(char *)"/h/c", (char *)"raw", .device = true},
         {(char *)"/h/d", (char *)"huge", .hugepages = true},
         {(char *)"/h/e", (char *)"seed", .readonly = true, .place = SANDBOX_AT_SECRET},
         {(char *)"/h/f", (char *)"seed", .readonly = true, .place = SANDBOX_AT_CONFIG_MAP}},
        6};
    struct sandbox_spec spec = {.dir = "/r/pods/u",
                                .hostname = "p",
                                .init_path = "/b/init",
                                .launcher_path = "/b/launcher",
                                .guest_dir = "/g",
                                .uffd_path = "/dev/ferry/userfaultfd",
                                .uid = 61201,
                                .gid = 61202,
                                .args = args,
                                .n_args = 2,
                                .disks = &disks};
    sandbox_args_cleanup struct sandbox_args a;

    (void)state;
    sandbox_args(&spec, &a);
    assert_string_equal(a.argv[0], "bwrap");
    assert_true(has_words(&a, "--bind", "/r/pods/u/m", "/run/kubevirt/migrationproxy"));
    assert_true(has_words(&a, "--bind", "/r/pods/u/libvirt", "/run/ferry-libvirt"));
    assert_true(has_words(&a, "--bind", "/r/pods/u/console", "/run/ferry-console"));
    assert_true(has_words(&a, "--bind", "/r/pods/u/state", "/run/ferry-state"));
    assert_true(has_words(&a, "--bind", "/r/pods/u/home", "/run/ferry-home"));
    assert_true(has_words(&a, "--ro-bind", "/g", "/run/ferry-guest"));
    assert_true(
        has_words(&a, "--ro-bind-try", "/b/../lib/ferry/gate", "/run/ferry/lib/ferry/gate"));
    assert_true(
        has_words(&a, "--ro-bind-try", "/b/ferry-rpc-filter", "/run/ferry/bin/ferry-rpc-filter"));
    assert_true(has_words(&a, "--dev-bind", "/dev/ferry/userfaultfd", "/dev/userfaultfd"));
    assert_true(has_words(&a, "--bind", "/h/a", "/run/kubevirt-private/vmi-disks/root"));
    assert_true(has_words(&a, "--ro-bind", "/h/b", "/run/kubevirt-private/vmi-disks/iso"));
    assert_true(has_words(&a, "--dev-bind", "/h/c", "/run/kubevirt-private/vmi-disks/raw"));
    assert_true(has_words(&a, "--bind", "/h/d", "/dev/hugepages"));
    assert_true(has_words(&a, "--ro-bind", "/h/e", "/run/kubevirt-private/secret/seed"));
    assert_true(has_words(&a, "--ro-bind", "/h/f", "/run/kubevirt-private/config-map/seed"));
    assert_true(has_words(&a, "--user", "61201:61202", "--"));
    assert_true(has_words(&a, "--unshare-pid", NULL, NULL));
    assert_true(has_words(&a, "--as-pid-1", NULL, NULL));
    assert_false(has_words(&a, "--die-with-parent", NULL, NULL));
    for (size_t i = 0; i < a.n; i++) {
        assert_false(ferry_streq(a.argv[i], "/dev/kvm"));
    }
    /* The launcher's own words stand last and untouched. */
    assert_string_equal(a.argv[a.n - 5], "/run/ferry/bin/ferry-launcher");
    assert_string_equal(a.argv[a.n - 4], "--uid");
    assert_string_equal(a.argv[a.n - 3], "1");
    assert_string_equal(a.argv[a.n - 2], "--guest-dir");
    assert_null(a.argv[a.n]);
}

static const struct sandbox_spec plain = {.dir = "/r/pods/u",
                                          .hostname = "p",
                                          .init_path = "/b/init",
                                          .launcher_path = "/b/launcher",
                                          .uid = 61201,
                                          .gid = 61202};

static size_t place_of(const struct sandbox_args *a, const char *word)
{
    size_t i = 0;

    while (i < a->n && !ferry_streq(a->argv[i], word)) {
        i++;
    }
    return i;
}

/* What keeps a sandbox in: without any one of these a guest that broke out of QEMU gets further. */
static void shut(void **state)
{
    static const char *const words[][3] = {
        {"--unshare-pid"},
        {"--unshare-ipc"},
        {"--unshare-uts"},
        {"--as-pid-1"},
        {"--new-session"},
        {"--clearenv"},
        {"--ro-bind", "/usr", "/usr"},
        {"--ro-bind", "/b/init", "/run/ferry/bin/ferry-init"},
        {"--ro-bind", "/b/launcher", "/run/ferry/bin/ferry-launcher"},
        {"--ro-bind", "/sys/devices/system", "/sys/devices/system"},
        {"--ro-bind", "/r/pods/u/etc/passwd", "/etc/passwd"},
        {"--proc", "/proc", "--dev"},
        {"--size", "67108864", "--perms"},
        {"1777", "--tmpfs", "/tmp"},
        {"--remount-ro", "/", NULL},
        {"--remount-ro", "/run", NULL},
        {"--remount-ro", "/var", NULL},
        {"--cap-drop", "ALL", NULL},
    };
    sandbox_args_cleanup struct sandbox_args a;

    (void)state;
    sandbox_args(&plain, &a);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        print_message("  %s %s\n", words[i][0], words[i][1] ? words[i][1] : "");
        assert_true(has_words(&a, words[i][0], words[i][1], words[i][2]));
    }
    /* Closed when all is in place, and before anything runs. */
    assert_true(place_of(&a, "--remount-ro") > place_of(&a, "/run/ferry-home"));
    assert_true(place_of(&a, "--cap-drop") < place_of(&a, "--cap-add"));
    size_t given = 0;
    for (size_t i = 0; i < a.n; i++) {
        given += ferry_streq(a.argv[i], "--cap-add") ? 1 : 0;
    }
    assert_int_equal(given, 3);
    assert_false(has_words(&a, "--cap-add", "CAP_DAC_OVERRIDE", NULL));
    assert_int_equal(place_of(&a, "/var/lib/libvirt"), a.n);
}

/* The variant by option. */
static void as_root(void **state)
{
    struct sandbox_spec spec = plain;
    sandbox_args_cleanup struct sandbox_args a;

    (void)state;
    spec.uid = spec.gid = 0;
    sandbox_args(&spec, &a);
    assert_true(has_words(&a, "--cap-add", "CAP_DAC_OVERRIDE", NULL));
    assert_true(has_words(&a, "--tmpfs", "/var/lib/libvirt", NULL));
    assert_true(has_words(&a, "--user", "0:0", "--"));
}

static void devices(void **state)
{
    struct sandbox_spec spec = plain;
    sandbox_args_cleanup struct sandbox_args none, all;

    (void)state;
    sandbox_args(&spec, &none);
    spec.kvm_path = "/dev/ferry/kvm";
    spec.tun_path = "/dev/ferry/tun";
    spec.uffd_path = "/dev/ferry/userfaultfd";
    sandbox_args(&spec, &all);
    assert_int_equal(place_of(&none, "--dev-bind"), none.n);
    assert_true(has_words(&all, "--dev-bind", "/dev/ferry/kvm", "/dev/kvm"));
    assert_true(has_words(&all, "--dev-bind", "/dev/ferry/tun", "/dev/net/tun"));
    assert_true(has_words(&all, "--dev-bind", "/dev/ferry/userfaultfd", "/dev/userfaultfd"));
}

static void a_long_name(void **state)
{
    char name[200];
    struct sandbox_spec spec = plain;
    sandbox_args_cleanup struct sandbox_args a;

    (void)state;
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    spec.hostname = name;
    sandbox_args(&spec, &a);
    assert_int_equal(strlen(a.argv[place_of(&a, "--hostname") + 1]),
                     63); /* the kernel takes no more */
}

static void uids_as_names(void **state)
{
    static const struct {
        const char *uid;
        bool ok;
    } cases[] = {
        {"3f1c1d5e-8d7c-4c0a-9a52-0d6d1f1a2b3c", true},
        {"a", true},
        {NULL, false},
        {"", false},
        {".", false},
        {"..", false},
        {"a/b", false},
        {"../../etc", false},
        {"a b", false},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(sandbox_uid_valid(cases[i].uid), cases[i].ok);
    }
}

/* A pid that was given to somebody else since is nobody's sandbox: it is never signalled. It is the
 * sandbox's as long as that holds its lock. */
static void another_of_the_same_pid(void **state)
{
    char dir[] = "/tmp/ferry-sandbox-XXXXXX", pod[64], path[96], lock[96];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(pod, sizeof(pod), "%s/u", dir);
    snprintf(path, sizeof(path), "%s/sandbox.json", pod);
    assert_int_equal(mkdir(pod, 0700), 0);
    snprintf(lock, sizeof(lock), "%s/exit", pod);
    const struct sandbox_host h = {.pods_dir = dir};
    ferry_cleanup_free char *text = ferry_asprintf("{\"child-pid\": %d}", (int)getpid());
    assert_int_equal(ferry_write_file(path, text, strlen(text), 0600, NULL), 0);
    assert_int_equal(sandbox_pid(&h, "u"), 0); /* nobody ever had a lock */
    ferry_cleanup_fd int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (int same = 0; same < 2; same++) {
        assert_int_equal(flock(fd, same ? LOCK_EX : LOCK_UN), 0);
        assert_int_equal(sandbox_pid(&h, "u"), same ? getpid() : 0);
        if (!same) {
            assert_int_equal(sandbox_signal(&h, "u", SIGKILL, NULL), 0); /* we live */
        }
    }
    ferry_remove_tree(dir, NULL);
}

/* Each device that is given, and none that is not. */
static void devices_asked_for(void **state)
{
    const struct sandbox_disks disks = {
        {{(char *)"/d/v", (char *)"vfio", .device = true, .place = SANDBOX_AT_VFIO},
         {(char *)"/d/g", (char *)"12", .device = true, .place = SANDBOX_AT_VFIO}},
        2};
    static const struct {
        const char *vhost_net;
        bool vfio;
    } cases[] = {{NULL, false}, {"/d/vhost", false}, {NULL, true}, {"/d/vhost", true}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct sandbox_spec spec = {.dir = "/r",
                                          .hostname = "p",
                                          .init_path = "/b/init",
                                          .launcher_path = "/b/launcher",
                                          .vhost_net_path = cases[i].vhost_net,
                                          .disks = cases[i].vfio ? &disks : NULL};
        sandbox_args_cleanup struct sandbox_args a;

        sandbox_args(&spec, &a);
        assert_int_equal(has_words(&a, "--dev-bind", "/d/vhost", "/dev/vhost-net"),
                         cases[i].vhost_net != NULL);
        assert_int_equal(has_words(&a, "--dir", "/dev/vfio", NULL), cases[i].vfio);
        assert_int_equal(has_words(&a, "--dev-bind", "/d/v", "/dev/vfio/vfio"), cases[i].vfio);
        assert_int_equal(has_words(&a, "--dev-bind", "/d/g", "/dev/vfio/12"), cases[i].vfio);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_asked_for),
        cmocka_unit_test(command_line),
        cmocka_unit_test(shut),
        cmocka_unit_test(as_root),
        cmocka_unit_test(devices),
        cmocka_unit_test(a_long_name),
        cmocka_unit_test(uids_as_names),
        cmocka_unit_test(another_of_the_same_pid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
