#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

char *ferry_find_program(const char *name, struct ferry_error *err)
{
    if (strchr(name, '/')) {
        return ferry_strdup(name);
    }
    const char *path = getenv("PATH");
    ferry_cleanup_free char *dirs = ferry_strdup(
        path && *path ? path : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    char *save = NULL;

    for (char *d = strtok_r(dirs, ":", &save); d; d = strtok_r(NULL, ":", &save)) {
        ferry_cleanup_free char *full = ferry_asprintf("%s/%s", d, name);

        if (access(full, X_OK) == 0) {
            return ferry_take_ptr(full);
        }
    }
    ferry_fail(err, FERRY_NOT_FOUND, "there is no program '%s' in PATH", name);
    return NULL;
}

/* The environment of the child; with passed descriptors it gets LISTEN_FDS (without LISTEN_PID: our
 * programs take its absence as "for you", and the pid is not known before the fork). */
static char **child_environment(const struct ferry_spawn *w)
{
    const char *const *from = w->env ? w->env : (const char *const *)environ;
    size_t n = 0, used = 0;

    while (from[n]) {
        n++;
    }
    char **env = ferry_xcalloc(n + 2, sizeof(*env));
    for (size_t i = 0; i < n; i++) {
        if (!ferry_str_starts(from[i], "LISTEN_FDS=") &&
            !ferry_str_starts(from[i], "LISTEN_PID=")) {
            env[used++] = ferry_strdup(from[i]);
        }
    }
    if (w->n_pass_fds) {
        env[used++] = ferry_asprintf("LISTEN_FDS=%zu", w->n_pass_fds);
    }
    return env;
}

static void free_environment(char **env)
{
    for (char **e = env; *e; e++) {
        free(*e);
    }
    free(env);
}

/* Runs between fork and exec: only async-signal-safe calls. Returns the errno of what failed. */
static int become_child(const struct ferry_spawn *w, const char *program, char **env,
                        int *status_fd)
{
    sigset_t none;

    if (w->new_session) {
        setsid();
        /* A Ctrl-C between the fork and here was not for it: being ignored forgets it. */
        signal(SIGINT, signal(SIGINT, SIG_IGN));
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0 || dup2(null_fd, 0) < 0) {
        return errno;
    }
    if (w->out_fd >= 0 && (dup2(w->out_fd, 1) < 0 || dup2(w->out_fd, 2) < 0)) {
        return errno;
    }
    for (const char *const *f = w->join_files; f && *f; f++) {
        int group = open(*f, O_WRONLY | O_CLOEXEC);

        if (group < 0 || write(group, "0", 1) < 0) {
            return errno;
        }
    }
    if (w->netns) {
        int ns = open(w->netns, O_RDONLY | O_CLOEXEC);

        if (ns < 0 || setns(ns, CLONE_NEWNET) < 0) {
            return errno;
        }
    }
    /* First out of the way of the numbers they are to get, then onto them. */
    int moved[16];
    size_t n = w->n_pass_fds < 16 ? w->n_pass_fds : 16;
    int *status = status_fd;
    *status = fcntl(*status, F_DUPFD_CLOEXEC, 64);
    for (size_t i = 0; i < n; i++) {
        moved[i] = fcntl(w->pass_fds[i], F_DUPFD_CLOEXEC, 64);
        if (moved[i] < 0) {
            return errno;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (dup2(moved[i], FERRY_LISTEN_FDS_START + (int)i) < 0) {
            return errno;
        }
    }
    /* Ours are close-on-exec from birth; what this process itself inherited may not be. */
    close_range(FERRY_LISTEN_FDS_START + (unsigned)n, ~0U, CLOSE_RANGE_CLOEXEC);
    if (w->drop && (setgroups(0, NULL) < 0 || setresgid(w->gid, w->gid, w->gid) < 0 ||
                    setresuid(w->uid, w->uid, w->uid) < 0)) {
        return errno;
    }
    execve(program, (char *const *)w->argv, env);
    if (errno == EACCES && w->program_dir > 0) {
        const char *name = strrchr(program, '/');

        execveat(w->program_dir, name ? name + 1 : program, (char *const *)w->argv, env, 0);
    }
    return errno;
}

int ferry_spawn(const struct ferry_spawn *w, pid_t *ret_pid, struct ferry_error *err)
{
    ferry_cleanup_free char *program = ferry_find_program(w->argv[0], err);
    int pipe_fds[2];

    if (!program) {
        return -FERRY_NOT_FOUND;
    }
    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        return ferry_fail_errno(err, errno, "making a pipe");
    }
    char **env = child_environment(w);
    pid_t pid = fork();
    if (pid == 0) {
        int failed = become_child(w, program, env, &pipe_fds[1]);
        ssize_t n = write(pipe_fds[1], &failed, sizeof(failed));

        (void)n;
        _exit(127);
    }
    int fork_errno = errno;
    free_environment(env);
    close(pipe_fds[1]);
    ferry_cleanup_fd int status = pipe_fds[0];
    if (pid < 0) {
        return ferry_fail_errno(err, fork_errno, "starting %s", program);
    }
    int failed = 0;
    if (read(status, &failed, sizeof(failed)) == (ssize_t)sizeof(failed)) {
        waitpid(pid, NULL, 0);
        return ferry_fail_errno(err, failed, "starting %s", program);
    }
    *ret_pid = pid;
    return 0;
}

int ferry_wait_child(pid_t pid, int64_t deadline_ns, int *ret_code, struct ferry_error *err)
{
    int status;

    for (int64_t pause_ms = 1;; pause_ms = pause_ms < 20 ? pause_ms * 2 : 20) {
        pid_t got = waitpid(pid, &status, WNOHANG);

        if (got == pid) {
            *ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            return 0;
        }
        if (got < 0 && errno != EINTR) {
            return ferry_fail_errno(err, errno, "waiting for process %d", (int)pid);
        }
        if (ferry_ms_left(deadline_ns) == 0) {
            return ferry_fail_errno(err, ETIMEDOUT, "waiting for process %d", (int)pid);
        }
        ferry_sleep_ms(pause_ms);
    }
}

static const char *last_line(struct ferry_buf *b)
{
    while (b->len && (b->data[b->len - 1] == '\n' || b->data[b->len - 1] == ' ')) {
        b->data[--b->len] = '\0';
    }
    if (!b->len) {
        return "(no output)";
    }
    const char *nl = strrchr(b->data, '\n');
    return nl ? nl + 1 : b->data;
}

static int read_all(int fd, struct ferry_buf *b)
{
    char chunk[4096];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return 0;
        }
        ferry_buf_append_capped(b, chunk, (size_t)n, 1 << 20, NULL);
    }
}

int ferry_run(const char *const *argv, struct ferry_buf *ret_output, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf output = {0};
    int pipe_fds[2], code;
    pid_t pid;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        return ferry_fail_errno(err, errno, "making a pipe");
    }
    ferry_cleanup_fd int from = pipe_fds[0];
    /* In a session of its own: a Ctrl-C is for this program, which may be about to undo things. */
    int rc = ferry_spawn(
        &(struct ferry_spawn){.argv = argv, .out_fd = pipe_fds[1], .new_session = true}, &pid, err);
    close(pipe_fds[1]);
    if (rc < 0) {
        return rc;
    }
    read_all(from, &output);
    rc = ferry_wait_child(pid, INT64_MAX, &code, err);
    if (rc < 0) {
        return rc;
    }
    if (code != 0) {
        ferry_cleanup_buf struct ferry_buf line = {0};

        for (const char *const *a = argv; *a; a++) {
            ferry_buf_printf(&line, "%s%s", a == argv ? "" : " ", *a);
        }
        return ferry_fail(err, FERRY_FATAL, "'%s' ended with code %d: %s", line.data, code,
                          last_line(&output));
    }
    if (ret_output) {
        *ret_output = output;
        output = (struct ferry_buf){0};
    }
    return 0;
}

uint64_t ferry_proc_start_time(pid_t pid)
{
    char path[64];
    ferry_cleanup_buf struct ferry_buf b = {0};

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (pid <= 0 || ferry_read_file(path, 65536, &b, NULL) < 0) {
        return 0;
    }
    /* The command name, in parentheses, may itself hold spaces and parentheses. */
    const char *p = b.data ? strrchr(b.data, ')') : NULL;
    char state = 'Z';
    unsigned long long start = 0;
    if (!p ||
        sscanf(p + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &state, &start) != 2 ||
        state == 'Z') {
        return 0;
    }
    return start;
}

static bool gone_before(pid_t pid, uint64_t start_time, int64_t deadline_ns)
{
    for (;;) {
        waitpid(pid, NULL, WNOHANG); /* reaps it when it is ours */
        if (ferry_proc_start_time(pid) != start_time) {
            return true;
        }
        if (ferry_ms_left(deadline_ns) == 0) {
            return false;
        }
        ferry_sleep_ms(10);
    }
}

int ferry_proc_end(pid_t pid, uint64_t start_time, int64_t grace_ms, struct ferry_error *err)
{
    uint64_t now = ferry_proc_start_time(pid);

    if (now == 0 || (start_time && now != start_time)) {
        return 0;
    }
    if (kill(pid, SIGTERM) < 0 && errno != ESRCH) {
        return ferry_fail_errno(err, errno, "ending process %d", (int)pid);
    }
    if (gone_before(pid, now, ferry_now_ns() + grace_ms * FERRY_NS_PER_MS)) {
        return 0;
    }
    kill(pid, SIGKILL);
    if (!gone_before(pid, now, ferry_now_ns() + 10 * FERRY_NS_PER_S)) {
        return ferry_fail(err, FERRY_FATAL, "process %d does not end, even by SIGKILL", (int)pid);
    }
    return 0;
}
