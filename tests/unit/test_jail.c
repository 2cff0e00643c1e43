/* What a sandbox may not ask of the kernel: the list, and the filter that is made of it, for real.
 */
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "jail/allowed.h"
#include "jail/refused.h"
#include "jail/users.h"

/* Held here by name: a row that gets lost would be noticed by nobody else. */
static void the_ones_that_matter(void **state)
{
    static const char *const names[] = {
        "mount",
        "umount2",
        "pivot_root",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "mount_setattr",
        "setns",
        "unshare",
        "clone3",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "bpf",
        "perf_event_open",
        "io_uring_setup",
        "reboot",
        "iopl",
        "ioperm",
        "swapon",
        "settimeofday",
        "clock_settime",
        "acct",
        "add_key",
        "request_key",
        "keyctl",
        "open_by_handle_at",
        "process_vm_readv",
        "process_vm_writev",
        "chroot",
    };
    size_t n;
    const struct jail_call *calls = jail_refused(&n);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bool found = false;

        for (size_t k = 0; k < n; k++) {
            found = found || (ferry_streq(calls[k].name, names[i]) && calls[k].argument < 0);
        }
        print_message("  %s\n", names[i]);
        assert_true(found);
    }
}

static void rows_make_sense(void **state)
{
    size_t n;
    const struct jail_call *calls = jail_refused(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        print_message("  %s\n", calls[i].name);
        assert_int_not_equal(seccomp_syscall_resolve_name(calls[i].name), __NR_SCMP_ERROR);
        assert_true(calls[i].errnum > 0);
        assert_true(calls[i].argument < 6);
        assert_true(calls[i].argument < 0 || (calls[i].value & ~calls[i].mask) == 0);
        for (size_t k = 0; k < i; k++) {
            assert_false(ferry_streq(calls[i].name, calls[k].name) &&
                         calls[i].value == calls[k].value);
        }
    }
}

/* No call stands in both lists, but for what is refused for some arguments. Held by name: what is
 * a door must not be let in by a list of what was recorded. */
static void what_is_allowed(void **state)
{
    static const char *const never[] = {
        "mount",
        "ptrace",
        "process_vm_readv",
        "pidfd_getfd",
        "bpf",
        "unshare",
        "setns",
        "init_module",
        "kexec_load",
        "keyctl",
        "io_uring_setup",
        "perf_event_open",
        "open_by_handle_at",
        "userfaultfd2",
        "vmsplice",
        "personality",
        "msgget",
        "shmget",
        "mq_open",
        "sync",
        "quotactl",
        "swapon",
        "reboot",
        "fanotify_init",
        "memfd_secret",
        "clone3",
        "move_pages",
        "lookup_dcookie",
        "remap_file_pages",
    };
    size_t n, n_refused;
    const char *const *calls = jail_allowed(&n);
    const struct jail_call *calls_refused = jail_refused(&n_refused);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        print_message("  %s\n", calls[i]);
        for (size_t k = 0; k < COUNT_OF(never); k++) {
#ifdef JAIL_SANITIZED
            assert_true(!ferry_streq(calls[i], never[k]) || ferry_streq(never[k], "ptrace"));
#else
            assert_false(ferry_streq(calls[i], never[k]));
#endif
        }
        for (size_t k = 0; k < n_refused; k++) {
            assert_false(ferry_streq(calls[i], calls_refused[k].name) &&
                         calls_refused[k].argument < 0);
        }
        for (size_t k = 0; k < i; k++) {
            assert_false(ferry_streq(calls[i], calls[k]));
        }
    }
}

struct attempt {
    const char *name;
    long call, a, b, c;
    int errnum; /* expected; 0 = anything but what the filter says */
};

static void *thread(void *arg)
{
    return arg;
}

/* In the child: the number of the first attempt that came out otherwise, or 0. */
static int try_all(const struct attempt *list, size_t n)
{
    struct ferry_error err;
    pthread_t t;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || jail_allow(&err) < 0 ||
        jail_close(&err) < 0) {
        return 200;
    }
    for (size_t i = 0; i < n; i++) {
        errno = 0;
        long rc = syscall(list[i].call, list[i].a, list[i].b, list[i].c, 0, 0, 0);

        if (list[i].errnum ? rc != -1 || errno != list[i].errnum
                           : rc == -1 && (errno == EPERM || errno == ENOSYS)) {
            return (int)i + 1;
        }
    }
    /* What everybody needs goes on: threads, processes, sockets. */
    if (pthread_create(&t, NULL, thread, NULL) != 0 || pthread_join(t, NULL) != 0) {
        return 201;
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    return child < 0 || waitpid(child, NULL, 0) != child ? 202 : 0;
}

static void the_filter_works(void **state)
{
    const struct attempt attempts[] = {
        {"unshare", SYS_unshare, CLONE_NEWUSER, 0, 0, EPERM},
        {"setns", SYS_setns, -1, 0, 0, EPERM},
        {"mount", SYS_mount, 0, 0, 0, EPERM},
        {"a user namespace by clone", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, EPERM},
        {"a network namespace by clone", SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, EPERM},
        {"clone3", SYS_clone3, 0, 0, 0, ENOSYS},
        {"bpf", SYS_bpf, 0, 0, 0, EPERM},
        {"keyctl", SYS_keyctl, 0, 0, 0, EPERM},
        {"io_uring", SYS_io_uring_setup, 1, 0, 0, EPERM},
        {"kexec", SYS_kexec_load, 0, 0, 0, EPERM},
        {"memory of others", SYS_process_vm_readv, 0, 0, 0, EPERM},
        {"a handle", SYS_open_by_handle_at, -1, 0, 0, EPERM},
        {"perf", SYS_perf_event_open, 0, 0, -1, EPERM},
        {"vsock", SYS_socket, AF_VSOCK, SOCK_STREAM, 0, EAFNOSUPPORT},
        {"packets", SYS_socket, AF_PACKET, SOCK_RAW, 0, EAFNOSUPPORT},
        {"kernel crypto", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0, EAFNOSUPPORT},
        {"words into a terminal", SYS_ioctl, 0, TIOCSTI, 0, EPERM},
        {"unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0},
        {"inet", SYS_socket, AF_INET, SOCK_STREAM, 0, 0},
        {"netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0},
        {"netlink: filters", SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, EPROTONOSUPPORT},
        {"netlink: crypto", SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_CRYPTO, EPROTONOSUPPORT},
        {"a family that there will be", SYS_socket, 63, SOCK_STREAM, 0, EAFNOSUPPORT},
        {"one beyond", SYS_socket, 200, SOCK_STREAM, 0, EAFNOSUPPORT},
        {"somebody's descriptor", SYS_pidfd_getfd, -1, 0, 0, EPERM},
        {"debugging", SYS_ptrace, PTRACE_SEIZE, 1, 0, EPERM},
        {"reading as a debugger", SYS_ptrace, PTRACE_PEEKDATA, 1, 0, EPERM},
        {"messages of System V", SYS_msgget, 0, 0, 0, ENOSYS},
        {"shared memory of System V", SYS_shmget, 0, 0, 0, ENOSYS},
        {"another personality", SYS_personality, 0xffffffff, 0, 0, ENOSYS},
        {"all file systems written out", SYS_sync, 0, 0, 0, ENOSYS},
        {"a call that there will be", 1000, 0, 0, 0, ENOSYS},
        {"a table of descriptors", SYS_close_range, 100, 100, 0, 0},
        {"memory of no file", SYS_memfd_create, (long)(intptr_t) "", 0, 0, 0},
        {"where memory is", SYS_get_mempolicy, 0, 0, 0, 0},
        {"another ioctl", SYS_ioctl, -1, FIONREAD, 0, 0},
        {"getpid", SYS_getpid, 0, 0, 0, 0},
    };
    int status;

    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(try_all(attempts, COUNT_OF(attempts)));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    int code = WEXITSTATUS(status);
    if (code) {
        fail_msg("%s", code <= (int)COUNT_OF(attempts) ? attempts[code - 1].name
                       : code == 200                   ? "the filter could not be loaded"
                       : code == 201                   ? "no thread could be made"
                                                       : "no process could be made");
    }
}

/* In a child: 0, or the number of what came out otherwise. */
static int be_alone(unsigned uid, unsigned gid)
{
    struct ferry_error err;
    ferry_cleanup_buf struct ferry_buf map = {0};
    unsigned first = 0, outside = 0, count = 0;

    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) {
        return 1;
    }
    if (jail_users_try(uid, gid, &err) < 0 || getuid() != uid) {
        return 2;
    }
    if (jail_users_enter(uid, gid, &err) < 0 || getuid() != uid || getgid() != gid) {
        return 3;
    }
    if (prctl(PR_GET_DUMPABLE) != 0) { /* as before: nobody looks into it */
        return 4;
    }
    if (ferry_read_file("/proc/self/uid_map", 4096, &map, NULL) < 0 || !map.len ||
        sscanf(map.data, "%u %u %u", &first, &outside, &count) != 3 || first != uid ||
        outside != uid || count != 1) {
        return 5;
    }
    /* Every capability there is, and nothing to use it on. */
    if (setresuid(0, 0, 0) == 0 || setgroups(0, NULL) == 0 || setresuid(uid + 1, uid, uid) == 0) {
        return 6;
    }
    return sethostname("x", 1) < 0 && mount("none", "/tmp", "tmpfs", 0, "") < 0 ? 0 : 7;
}

static void nobody_else_is_there(void **state)
{
    struct ferry_error err = {0};
    int status;

    (void)state;
    if (geteuid() != 0 || jail_users_try(61201, 61201, &err) < 0) {
        print_message("  no user namespaces here: %s\n", err.msg);
        skip();
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(be_alone(1879048192, 1879048192));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* As in a unit with RestrictNamespaces=: the reason is told, and the caller is as it was. */
static int refused_by_a_filter(void)
{
    struct ferry_error err = {0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || jail_close(&err) < 0) {
        return 1;
    }
    return jail_users_try(61201, 61201, &err) < 0 && err.sys == EPERM && getuid() == 0 ? 0 : 2;
}

static void a_host_may_forbid_it(void **state)
{
    int status;

    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(refused_by_a_filter());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ones_that_matter), cmocka_unit_test(rows_make_sense),
        cmocka_unit_test(what_is_allowed),      cmocka_unit_test(the_filter_works),
        cmocka_unit_test(nobody_else_is_there), cmocka_unit_test(a_host_may_forbid_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
