/* Theory of operation. One thread, one poll(): a descriptor for signals and a pidfd per running
 * program. A pidfd works for children and for processes that a former supervisor started, so both
 * are watched the same way; only for children is there an exit code to read. The state file is
 * written after every start and every end. The API's listening sockets are opened here at the first
 * start of the API server and kept: over its restart connections wait instead of being refused. */
#include "cli/site/supervise.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "cli/site/site_net.h"
#include "cli/site/site_state.h"

enum {
    FIRST_PAUSE_MS = 100,
    LONGEST_PAUSE_MS = 5000,
    LONG_LIFE_MS = 10000, /* who lived this long has not failed to start */
    FILE_POLL_MS = 50,    /* how soon a file that a program waits for is seen */
    GRACE_MS = 5000,
};

struct worker {
    const struct site_daemon *daemon;
    struct site_process *process; /* in the state */
    int pidfd;                    /* -1 = does not run */
    int64_t started_ns, not_before_ns;
    int failures;
};

struct supervisor {
    const struct site_plan *plan;
    struct site_state *state;
    struct worker *workers;
    size_t n;
    int signal_fd;
    int api_fds[2]; /* host, fabric; -1 = not open */
    struct pollfd *polls;
};

int64_t supervise_pause_ms(int *failures, int64_t lived_ms)
{
    *failures = lived_ms >= LONG_LIFE_MS ? 1 : *failures + 1;

    int64_t pause = FIRST_PAUSE_MS;
    for (int i = 1; i < *failures && pause < LONGEST_PAUSE_MS; i++) {
        pause *= 2;
    }
    return pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS;
}

static void save(struct supervisor *s)
{
    struct ferry_error err;

    if (site_state_write(s->plan->state_file, s->state, &err) < 0) {
        ferry_warn("cannot write the state file", F_ERR(&err));
    }
}

/* ---- starting ------------------------------------------------------------------------------ */

static int open_api_sockets(struct supervisor *s, struct ferry_error *err)
{
    if (s->api_fds[0] < 0) {
        s->api_fds[0] = site_net_listen(NULL, "127.0.0.1", s->plan->port, err);
    }
    if (s->api_fds[0] < 0) {
        return -FERRY_RETRY;
    }
    if (s->api_fds[1] < 0) {
        s->api_fds[1] =
            site_net_listen(s->plan->fabric, s->plan->fabric_address, s->plan->port, err);
    }
    return s->api_fds[1] < 0 ? -FERRY_RETRY : 0;
}

static int spawn(struct supervisor *s, struct worker *w, pid_t *ret_pid, struct ferry_error *err)
{
    const struct site_daemon *d = w->daemon;
    ferry_cleanup_free char *netns = d->netns ? site_plan_netns_path(d->netns) : NULL;
    ferry_cleanup_free char *log = ferry_asprintf("%s/%s.log", s->plan->log_dir, d->name);
    ferry_cleanup_fd int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (out < 0) {
        return ferry_fail_errno(err, errno, "opening %s", log);
    }
    if (d->api_sockets && open_api_sockets(s, err) < 0) {
        return -FERRY_RETRY;
    }
    return ferry_spawn(
        &(struct ferry_spawn){
            .argv = (const char *const *)d->argv,
            .out_fd = out,
            .netns = netns,
            .pass_fds = s->api_fds,
            .n_pass_fds = d->api_sockets ? 2 : 0,
        },
        ret_pid, err);
}

static void schedule(struct worker *w, int64_t now)
{
    int64_t lived_ms = w->started_ns ? (now - w->started_ns) / FERRY_NS_PER_MS : 0;

    w->not_before_ns = now + supervise_pause_ms(&w->failures, lived_ms) * FERRY_NS_PER_MS;
}

static void start(struct supervisor *s, struct worker *w)
{
    struct ferry_error err;
    int64_t now = ferry_now_ns();
    pid_t pid;

    if (w->started_ns) {
        w->process->restarts++;
    }
    if (spawn(s, w, &pid, &err) < 0) {
        ferry_error("cannot start a program", F_STR("name", w->daemon->name), F_ERR(&err));
        w->started_ns = now;
        schedule(w, now);
        return;
    }
    w->started_ns = now;
    w->pidfd = pidfd_open(pid, 0);
    w->process->pid = pid;
    w->process->start_time = ferry_proc_start_time(pid);
    ferry_info("started", F_STR("name", w->daemon->name), F_INT("pid", pid));
}

static bool may_start(const struct worker *w, int64_t now)
{
    return w->pidfd < 0 && now >= w->not_before_ns &&
           (!w->daemon->after || access(w->daemon->after, F_OK) == 0);
}

static void start_due(struct supervisor *s)
{
    int64_t now = ferry_now_ns();
    bool changed = false;

    for (size_t i = 0; i < s->n; i++) {
        if (may_start(&s->workers[i], now)) {
            start(s, &s->workers[i]);
            changed = true;
        }
    }
    if (changed) {
        save(s);
    }
}

/* ---- ending -------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool supervise_same_call(const char *cmdline, size_t len, char *const *argv)
{
    const char *at = cmdline, *end = cmdline + len;

    if (len == 0 || end[-1] != '\0' || !ferry_streq(base_name(at), base_name(argv[0]))) {
        return false;
    }
    for (size_t i = 1; (at += strlen(at) + 1) < end; i++) {
        if (!argv[i] || !ferry_streq(at, argv[i])) {
            return false;
        }
        if (!argv[i + 1]) {
            return at + strlen(at) + 1 == end;
        }
    }
    return !argv[1];
}

/* A process that was called as this one was, or 0. */
static pid_t find_successor(const struct worker *w)
{
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    for (const struct dirent *e; proc && found == 0 && (e = readdir(proc));) {
        ferry_cleanup_buf struct ferry_buf b = {0};
        ferry_cleanup_free char *path = ferry_asprintf("/proc/%s/cmdline", e->d_name);
        long long pid;

        if (ferry_parse_int(e->d_name, 2, 1 << 30, &pid, NULL) == 0 && pid != w->process->pid &&
            ferry_read_file(path, 1 << 16, &b, NULL) == 0 &&
            supervise_same_call(b.data, b.len, w->daemon->argv)) {
            found = (pid_t)pid;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return found;
}

/* Whether it ended because another process has taken over from it. */
static bool was_succeeded(struct supervisor *s, struct worker *w)
{
    pid_t old = w->process->pid, pid = w->process->last_exit == 0 ? find_successor(w) : 0;
    int pidfd = pid ? pidfd_open(pid, 0) : -1;

    if (pidfd < 0) {
        return false;
    }
    close(w->pidfd);
    w->pidfd = pidfd;
    w->process->pid = pid;
    w->process->start_time = ferry_proc_start_time(pid);
    ferry_info("a successor has taken over", F_STR("name", w->daemon->name), F_INT("pid", pid),
               F_INT("from", old));
    save(s);
    return true;
}

static void ended(struct supervisor *s, struct worker *w)
{
    int status = 0;
    pid_t pid = w->process->pid;

    /* A process taken over from a former supervisor is not our child: its code is not known. */
    if (waitpid(pid, &status, WNOHANG) == pid) {
        w->process->last_exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else {
        /* Nor is the reason: it may have handed over. */
        w->process->last_exit = find_successor(w) ? 0 : 255;
    }
    if (was_succeeded(s, w)) {
        return;
    }
    ferry_warn("ended", F_STR("name", w->daemon->name), F_INT("pid", pid),
               F_INT("code", w->process->last_exit));
    close(w->pidfd);
    w->pidfd = -1;
    w->process->pid = 0;
    w->process->start_time = 0;
    schedule(w, ferry_now_ns());
    save(s);
}

static int next_wait_ms(const struct supervisor *s)
{
    int wait = -1;

    for (size_t i = 0; i < s->n; i++) {
        const struct worker *w = &s->workers[i];
        int ms = ferry_ms_left(w->not_before_ns);

        if (w->pidfd >= 0) {
            continue;
        }
        if (ms < FILE_POLL_MS) {
            ms = FILE_POLL_MS;
        }
        wait = wait < 0 || ms < wait ? ms : wait;
    }
    return wait;
}

/* Waits for a signal or an end; false = asked to stop. */
static bool wait_and_handle(struct supervisor *s)
{
    s->polls[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    for (size_t i = 0; i < s->n; i++) {
        s->polls[i + 1] = (struct pollfd){.fd = s->workers[i].pidfd, .events = POLLIN};
    }
    if (poll(s->polls, s->n + 1, next_wait_ms(s)) < 0) {
        return true;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->workers[i].pidfd >= 0 && s->polls[i + 1].revents) {
            ended(s, &s->workers[i]);
        }
    }
    struct signalfd_siginfo info;
    return !(s->polls[0].revents & POLLIN) ||
           read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info) ||
           info.ssi_signo == SIGHUP;
}

static void stop_all(struct supervisor *s)
{
    struct ferry_error err;

    /* All at once first: ending them one after the other would add up their times. */
    for (size_t i = 0; i < s->n; i++) {
        if (s->workers[i].pidfd >= 0) {
            pidfd_send_signal(s->workers[i].pidfd, SIGTERM, NULL, 0);
        }
    }
    for (size_t i = s->n; i-- > 0;) {
        struct site_process *p = s->workers[i].process;

        if (p->pid && ferry_proc_end(p->pid, p->start_time, GRACE_MS, &err) < 0) {
            ferry_error("cannot kill a process of the sandbox", F_STR("name", p->name),
                        F_ERR(&err));
            continue;
        }
        p->pid = 0;
    }
    save(s);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Matches the state's rows with the plan's, and takes over what still runs. */
static void adopt(struct supervisor *s, const struct site_daemons *daemons)
{
    struct site_process *rows = ferry_xcalloc(daemons->n, sizeof(*rows));

    s->n = daemons->n;
    s->workers = ferry_xcalloc(s->n, sizeof(*s->workers));
    s->polls = ferry_xcalloc(s->n + 1, sizeof(*s->polls));
    for (size_t i = 0; i < s->n; i++) {
        rows[i].last_exit = -1;
        snprintf(rows[i].name, sizeof(rows[i].name), "%s", daemons->items[i].name);
        s->workers[i] =
            (struct worker){.daemon = &daemons->items[i], .process = &rows[i], .pidfd = -1};
        for (size_t j = 0; j < s->state->n_daemons; j++) {
            const struct site_process *old = &s->state->daemons[j];

            if (ferry_streq(old->name, rows[i].name) && site_process_alive(old)) {
                rows[i] = *old;
                rows[i].restarts = 0; /* those of the former supervisor are history */
                s->workers[i].pidfd = pidfd_open(old->pid, 0);
                s->workers[i].started_ns = ferry_now_ns();
                ferry_info("taken over", F_STR("name", old->name), F_INT("pid", old->pid));
            }
        }
    }
    free(s->state->daemons);
    s->state->daemons = rows;
    s->state->n_daemons = s->n;
}

static int block_signals(struct ferry_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    return fd < 0 ? ferry_fail_errno(err, errno, "making a signal descriptor") : fd;
}

int supervise_run(const struct site_plan *p, struct ferry_error *err)
{
    site_cleanup_state struct site_state *state = NULL;
    site_cleanup_daemons struct site_daemons daemons = site_plan_daemons(p);
    struct supervisor s = {.plan = p, .api_fds = {-1, -1}};
    int rc = site_state_read(p->state_file, &state, err);

    if (rc < 0) {
        return rc;
    }
    s.signal_fd = block_signals(err);
    if (s.signal_fd < 0) {
        return s.signal_fd;
    }
    setenv(SUPERVISE_MARK, p->root, 1);
    s.state = state;
    adopt(&s, &daemons);
    snprintf(state->supervisor.name, sizeof(state->supervisor.name), "supervisor");
    state->supervisor.pid = getpid();
    state->supervisor.start_time = ferry_proc_start_time(getpid());
    save(&s);
    do {
        start_due(&s);
    } while (wait_and_handle(&s));
    stop_all(&s);
    free(s.workers);
    free(s.polls);
    return 0;
}
