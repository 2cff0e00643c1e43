/* ferry-init: PID 1 of a pod's sandbox.
 *
 * It starts the launcher, reaps whatever is re-parented to it (libvirtd leaves QEMU to it), and
 * starts the launcher again when it dies by anything but exit 0. It never ends QEMU or libvirtd
 * because of a dead launcher: the guest runs on and the next launcher finds it. The sandbox ends
 * only when the launcher exits 0, or when the very first start is impossible: then this process
 * leaves and the kernel ends everything else in the pid namespace.
 *
 * Descriptor 3, the launcher's listening control socket, stays open here and is passed to every
 * launcher, so callers that connect between two launchers wait instead of failing. Descriptors 4
 * and 5 are the two ends of a socket pair that nobody but launchers uses: what one sent and did not
 * receive is there for the next (the connection to QEMU's monitor in post-copy). The descriptor
 * of the exit file carries an flock that was taken by the pods agent: it is released when this
 * process ends, and must therefore not reach any other process. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/options.h"
#include "base/proc.h"
#include "jail/allowed.h"
#include "jail/refused.h"
#include "jail/users.h"

#define BACKOFF_MIN_NS (100 * FERRY_NS_PER_MS)
#define BACKOFF_MAX_NS (5 * FERRY_NS_PER_S)
/* A launcher that lived this long starts with the shortest back-off again. */
#define SETTLED_NS (10 * FERRY_NS_PER_S)
/* Time a launcher started while stopping gets to prepare itself for SIGTERM. */
#define TERM_DELAY_NS FERRY_NS_PER_S

struct init {
    const char *const *argv;
    int exit_fd;
    int store[2];
    int kills_fd; /* or -1 */
    pid_t child;  /* 0 = none */
    int64_t started_ns, restart_ns, term_ns, backoff_ns;
    bool stopping, term_due, ever_ran;
};

/* libvirtd as root starts no QEMU without these. */
#define ROOT_KEEPS                                                                                 \
    (1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_SETPCAP | 1U << CAP_DAC_OVERRIDE)

static int drop_bounding_set(unsigned keep, struct ferry_error *err)
{
    /* One past the last capability that this kernel knows is EINVAL. */
    for (unsigned long cap = 0;
         (cap < 32 && keep & 1U << cap) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++) {
    }
    return errno == EINVAL ? 0
                           : ferry_fail_errno(err, errno, "dropping the capability bounding set");
}

/* A namespace with this user alone, where the host allows it; it begins with all capabilities. */
static int leave_others(unsigned uid, unsigned gid, struct ferry_error *err)
{
    struct ferry_error why;

    if (jail_users_try(uid, gid, &why) < 0) {
        ferry_warn("no user namespace here: going on without", F_ERR(&why));
        return 0;
    }
    int rc = jail_users_enter(uid, gid, err);
    return rc < 0 ? rc : drop_bounding_set(0, err);
}

/* Becomes `user` for good: no other group, no capability, no way to get any. 0:0 is root in name,
 * and keeps just what giving more away takes. */
static int give_up_root(const char *user, struct ferry_error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3] = {{0}};
    unsigned uid, gid;
    int end = 0;

    if (sscanf(user, "%u:%u%n", &uid, &gid, &end) != 2 || user[end] || !uid != !gid) {
        return ferry_fail(err, FERRY_INVALID, "--user: '%s' is not UID:GID", user);
    }
    unsigned keep = uid == 0 ? ROOT_KEEPS : 0;
    left[0].permitted = left[0].effective = keep;
    int rc = drop_bounding_set(keep, err);
    if (rc < 0) {
        return rc;
    }
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) {
        return ferry_fail_errno(err, errno, "becoming user %u:%u", uid, gid);
    }
    if (uid && (rc = leave_others(uid, gid, err)) < 0) {
        return rc;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, left) < 0) {
        return ferry_fail_errno(err, errno, "dropping capabilities");
    }
    return 0;
}

/* The exit file says "running" from here on, so that a sandbox that was killed can be told from one
 * that never came up; at the end it says the exit code. */
static void note(const struct init *in, const char *text)
{
    struct ferry_error err;

    if (in->exit_fd < 0) {
        return;
    }
    if (lseek(in->exit_fd, 0, SEEK_SET) < 0 || ftruncate(in->exit_fd, 0) < 0) {
        ferry_error("cannot rewrite the exit file", F_STR("error", strerror(errno)));
    } else if (ferry_write_all(in->exit_fd, text, strlen(text), &err) < 0) {
        ferry_error("cannot write the exit file", F_ERR(&err));
    }
}

static int finish(const struct init *in, int code)
{
    char text[16];

    snprintf(text, sizeof(text), "%d\n", code);
    note(in, text);
    return code;
}

static int start(struct init *in, struct ferry_error *err)
{
    const int pass[] = {FERRY_LISTEN_FDS_START, in->store[0], in->store[1], in->kills_fd};
    size_t n = in->kills_fd >= 0 ? 4 : 3;
    bool has_control = fcntl(pass[0], F_GETFD) >= 0;
    int rc = ferry_spawn(&(struct ferry_spawn){.argv = in->argv,
                                               .out_fd = -1,
                                               .pass_fds = pass,
                                               .n_pass_fds = has_control ? n : 0,
                                               .new_session = true},
                         &in->child, err);

    in->ever_ran = in->ever_ran || rc == 0;
    in->started_ns = ferry_now_ns();
    in->term_due = in->stopping;
    in->term_ns = in->started_ns + TERM_DELAY_NS;
    return rc;
}

static void launcher_died(struct init *in, int code)
{
    int64_t now = ferry_now_ns();

    if (now - in->started_ns >= SETTLED_NS) {
        in->backoff_ns = BACKOFF_MIN_NS;
    }
    ferry_warn("launcher died, restarting it", F_INT("code", code),
               F_INT("backoffMs", in->backoff_ns / FERRY_NS_PER_MS));
    in->child = 0;
    in->restart_ns = now + in->backoff_ns;
    in->backoff_ns = in->backoff_ns * 2 < BACKOFF_MAX_NS ? in->backoff_ns * 2 : BACKOFF_MAX_NS;
}

/* True when the launcher ended with exit 0. */
static bool reap(struct init *in)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0) {
            return false;
        }
        if (pid != in->child) {
            continue;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            return true;
        }
        launcher_died(in, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
}

/* Sleeps until a signal comes or something is due. */
static int wait_signal(const struct init *in, const sigset_t *set)
{
    int64_t due = INT64_MAX;

    if (!in->child) {
        due = in->restart_ns;
    } else if (in->term_due) {
        due = in->term_ns;
    }
    if (due == INT64_MAX) {
        return sigwaitinfo(set, NULL);
    }
    int left = ferry_ms_left(due);
    struct timespec t = {.tv_sec = left / 1000, .tv_nsec = (left % 1000) * FERRY_NS_PER_MS};
    return sigtimedwait(set, NULL, &t);
}

static int supervise(struct init *in, const sigset_t *set)
{
    struct ferry_error err;

    for (;;) {
        int64_t now = ferry_now_ns();

        if (!in->child && now >= in->restart_ns && start(in, &err) < 0) {
            ferry_error("cannot start the launcher", F_ERR(&err));
            if (!in->ever_ran) {
                return finish(in, 127);
            }
            launcher_died(in, 127); /* a guest may be running: try on */
        }
        if (in->child && in->term_due && now >= in->term_ns) {
            in->term_due = false;
            kill(in->child, SIGTERM);
        }
        int sig = wait_signal(in, set);
        if (sig == SIGTERM || sig == SIGINT) {
            in->stopping = true;
            if (in->child) {
                kill(in->child, SIGTERM);
            }
        }
        /* Not only on SIGCHLD: several deaths may be folded into one signal. */
        if (reap(in)) {
            return finish(in, 0);
        }
    }
}

int main(int argc, char **argv)
{
    struct ferry_log_options lo = {0};
    int exit_fd = 0, kills_fd = 0;
    const char *user = NULL;
    struct ferry_error err;
    const struct ferry_option options[] = {
        {"exit-fd", 0, FERRY_OPTION_INT, &exit_fd, "N",
         "open file that says \"running\", and the exit code when the sandbox ends"},
        {"kills-fd", 0, FERRY_OPTION_INT, &kills_fd, "N",
         "open file that counts what the kernel killed here for memory; COMMAND gets it"},
        {"user", 0, FERRY_OPTION_STRING, &user, "UID:GID",
         "become this user, without any capability, with fewer system calls and, where the host "
         "allows it, nobody else around, before anything is started"},
        FERRY_LOG_OPTION_ROWS(&lo),
        {0},
    };
    const struct ferry_command cmd = {
        .name = "ferry-init",
        .usage = "[OPTION]... -- COMMAND [ARGUMENT]...",
        .summary = "PID 1 of a pod's sandbox: runs COMMAND, starts it again when it dies by\n"
                   "anything but exit 0, reaps processes, passes SIGTERM on.",
        .options = options,
    };
    int first = ferry_options_parse(&cmd, argc, argv, &err);

    if (first < 0 || ferry_log_options_apply("ferry-init", &lo, &err) < 0) {
        return ferry_die("ferry-init", FERRY_EXIT_USAGE, &err);
    }
    if (first == argc) {
        ferry_fail(&err, FERRY_INVALID, "no command given (see ferry-init --help)");
        return ferry_die("ferry-init", FERRY_EXIT_USAGE, &err);
    }
    if (exit_fd && fcntl(exit_fd, F_SETFD, FD_CLOEXEC) < 0) {
        ferry_fail_errno(&err, errno, "--exit-fd %d", exit_fd);
        return ferry_die("ferry-init", FERRY_EXIT_USAGE, &err);
    }
    if (kills_fd && fcntl(kills_fd, F_SETFD, FD_CLOEXEC) < 0) {
        ferry_fail_errno(&err, errno, "--kills-fd %d", kills_fd);
        return ferry_die("ferry-init", FERRY_EXIT_USAGE, &err);
    }
    if (user && (give_up_root(user, &err) < 0 || jail_allow(&err) < 0 || jail_close(&err) < 0)) {
        return ferry_die("ferry-init", FERRY_EXIT_FAILED, &err);
    }

    /* Blocked and waited for: an init without handlers would never see them otherwise. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);

    struct init in = {
        .store = {-1, -1},
        .argv = (const char *const *)argv + first,
        .exit_fd = exit_fd ? exit_fd : -1,
        .kills_fd = kills_fd ? kills_fd : -1,
        .backoff_ns = BACKOFF_MIN_NS,
    };
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, in.store) < 0) {
        ferry_fail_errno(&err, errno, "making a socket pair");
        return ferry_die("ferry-init", FERRY_EXIT_FAILED, &err);
    }
    note(&in, "running\n");
    return supervise(&in, &set);
}
