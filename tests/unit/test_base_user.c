/* Tables for src/base/user.c. */
#include "lib/unit.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/user.h"

static void users_are_names_or_numbers(void **state)
{
    static const struct {
        const char *text, *name;
        int rc;
        unsigned uid, gid;
    } cases[] = {
        {NULL, "nobody", 0, 65534, 65534},
        {NULL, "ferry-nobody-here", 0, 61299, 61299},
        {"root", "nobody", 0, 0, 0},
        {"1:2", "nobody", 0, 1, 2},
        {"0:0", "nobody", 0, 0, 0},
        {"ferry-nobody-here", "nobody", -FERRY_INVALID, 0, 0},
        {"", "nobody", -FERRY_INVALID, 0, 0},
        {"1", "nobody", -FERRY_INVALID, 0, 0},
        {":", "nobody", -FERRY_INVALID, 0, 0},
        {"1:", "nobody", -FERRY_INVALID, 0, 0},
        {"-1:1", "nobody", -FERRY_INVALID, 0, 0},
        {"1:4294967295", "nobody", -FERRY_INVALID, 0, 0},
        {"1:2:3", "nobody", -FERRY_INVALID, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_user u = {0};
        struct ferry_error err = {0};
        int rc = ferry_user_find(cases[i].text, "--user", cases[i].name, 61299, &u, &err);

        if (rc != cases[i].rc || u.uid != cases[i].uid || u.gid != cases[i].gid) {
            fail_msg("case %zu: %d, %u:%u, %s", i, rc, u.uid, u.gid, err.msg);
        }
    }
}

/* In a child: what is given up cannot be had again. */
static int child(int (*what)(void))
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        _exit(what());
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int become(void)
{
    const struct ferry_user u = {.uid = 61299, .gid = 61298};
    gid_t groups[2];
    struct ferry_error err;

    if (ferry_user_become(&u, 61297, &err) < 0 || getuid() != 61299 || getegid() != 61298 ||
        getgroups(2, groups) != 1 || groups[0] != 61297) {
        return 1;
    }
    return setuid(0) == 0 || setgid(0) == 0 ? 2 : access("/proc/self/fd", R_OK) < 0 ? 3 : 0;
}

static int act(void)
{
    const struct ferry_user u = {.uid = 61299, .gid = 61298}, root = {0};
    struct ferry_error err;

    if (ferry_user_act_as(&u, &err) < 0 || geteuid() != 61299 || getegid() != 61298 ||
        ferry_user_return(&err) < 0 || geteuid() != 0 || getegid() != 0) {
        return 1;
    }
    return ferry_user_act_as(&root, &err) < 0 || ferry_user_become(&root, FERRY_NO_GROUP, &err) < 0
               ? 2
               : 0;
}

static void root_becomes_somebody(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(child(become), 0);
    assert_int_equal(child(act), 0);
}

/* A process of that user, which waits for a signal. */
static pid_t process_of(uid_t uid)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (syscall(SYS_setresuid, uid, uid, uid) == 0) {
            pause();
        }
        _exit(1);
    }
    return pid;
}

static bool ended_by(pid_t pid, int sig)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == sig;
}

static bool is_of(pid_t pid, uid_t uid)
{
    char path[64];
    ferry_cleanup_buf struct ferry_buf b = {0};
    unsigned found = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    return ferry_read_file(path, 65536, &b, NULL) == 0 &&
           sscanf(strstr(b.data, "\nUid:"), "\nUid: %u", &found) == 1 && found == uid;
}

/* Root that may not signal everybody: 0, or which step went wrong. */
static int signal_as(void)
{
    pid_t pid = process_of(61299);
    ferry_cleanup_fd int fd = pidfd_open(pid, 0);
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    int64_t deadline = ferry_now_ns() + 30 * FERRY_NS_PER_S;
    struct ferry_error err;

    while (!is_of(pid, 61299) && ferry_ms_left(deadline)) {
        ferry_sleep_ms(2);
    }
    if (syscall(SYS_capget, &head, caps) < 0) {
        return 1;
    }
    caps[0].permitted &= ~(1U << CAP_KILL);
    caps[0].effective &= ~(1U << CAP_KILL);
    if (syscall(SYS_capset, &head, caps) < 0) {
        return 2;
    }
    if (pidfd_send_signal(fd, SIGUSR1, NULL, 0) == 0 || errno != EPERM) {
        return 3;
    }
    if (ferry_user_signal(fd, pid, SIGTERM, &err) < 0 || !ended_by(pid, SIGTERM)) {
        return 4;
    }
    if (geteuid() != 0 || ferry_user_signal(fd, pid, SIGTERM, &err) < 0) {
        return 5; /* who has ended is fine */
    }
    /* The pid of one, the descriptor of another: as the user of the first it may not. */
    pid_t mine = process_of(61298), other = process_of(61297);
    ferry_cleanup_fd int mine_fd = pidfd_open(mine, 0), other_fd = pidfd_open(other, 0);
    while ((!is_of(mine, 61298) || !is_of(other, 61297)) && ferry_ms_left(deadline)) {
        ferry_sleep_ms(2);
    }
    int rc = ferry_user_signal(other_fd, mine, SIGKILL, &err) < 0 && geteuid() == 0 ? 0 : 6;
    return ferry_user_signal(other_fd, other, SIGKILL, &err) == 0 && ended_by(other, SIGKILL) &&
                   ferry_user_signal(mine_fd, mine, SIGKILL, &err) == 0 && ended_by(mine, SIGKILL)
               ? rc
               : 7;
}

static void root_signals_as_the_user_of_a_process(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(child(signal_as), 0);
}

/* Where root is nobody, everybody else looks like root; where it is somebody, nobody does. */
static void root_where_it_is_not(void **state)
{
    static const char own[] = "1879048192 1879048192          1\n";
    static const struct {
        const char *map;
        uid_t uid;
        bool may;
    } cases[] = {
        {"         0          0 4294967295\n", 0, true},
        {"         0          0 4294967295\n", 65534, false},
        {"         0     100000      65536\n", 65534, false},
        {"1879048192          0          1\n", 65534, false},
        {own, 0, true},
        {own, 65534, true},
        {own, 1879048192, false},
        {own, 61200, false},
        {"61201 61201 1\n0 5 1\n", 65534, false},
        {"", 65534, false},
        {"nonsense\n", 65534, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (ferry_user_map_may_be_root(cases[i].map, 65534, cases[i].uid) != cases[i].may) {
            fail_msg("case %zu", i);
        }
    }
    assert_true(ferry_user_may_be_root(0));
    assert_false(ferry_user_may_be_root(65534)); /* tests have a root */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_names_or_numbers),
        cmocka_unit_test(root_becomes_somebody),
        cmocka_unit_test(root_signals_as_the_user_of_a_process),
        cmocka_unit_test(root_where_it_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
