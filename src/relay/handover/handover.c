#include "relay/handover/handover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/str.h"
#include "relay/state/state.h"

#define READY_NS (30 * FERRY_NS_PER_S)
#define PREPARED_NS (20 * FERRY_NS_PER_S) /* its peers wait meanwhile */
#define TAKEN_NS (10 * FERRY_NS_PER_S)
#define END_NS (10 * FERRY_NS_PER_S)
enum { WORD_MAX = 64, BATCH = 250 /* the kernel takes 253 descriptors at once */ };
static const char fd_name[] = "ferry-handover", takes_denials[] = "denials";

/* ---- words ------------------------------------------------------------------------------------
 */

static int say(int fd, const char *word, const int *fds, size_t n, struct ferry_error *err)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(BATCH * sizeof(int))];
    } control = {0};
    struct iovec v = {.iov_base = (void *)(uintptr_t)word, .iov_len = strlen(word)};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

    if (n > 0) {
        m.msg_control = control.buf;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    }
    if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0) {
        return ferry_fail_errno(err, errno, "saying '%s'", word);
    }
    return 0;
}

/* Adds what came along to `fds`. */
static void collect(struct msghdr *m, struct relay_fds *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            relay_fds_add(fds, fd);
        }
    }
}

/* The next word, and descriptors with it. NOT_FOUND: the other side is gone. */
static int hear(int fd, int64_t deadline_ns, char word[WORD_MAX], struct relay_fds *fds,
                struct ferry_error *err)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(BATCH * sizeof(int))];
    } control;
    struct iovec v = {.iov_base = word, .iov_len = WORD_MAX - 1};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.buf,
                       .msg_controllen = sizeof(control.buf)};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;

    while ((n = poll(&p, 1, ferry_ms_left(deadline_ns))) < 0 && errno == EINTR) {
    }
    if (n == 0) {
        return ferry_fail(err, FERRY_RETRY, "nothing said in time");
    }
    ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    if (got <= 0) {
        return ferry_fail(err, FERRY_NOT_FOUND, "the other process is gone");
    }
    word[got] = '\0';
    struct relay_fds came = {0};
    collect(&m, fds ? fds : &came);
    relay_fds_done(&came, true);
    if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        return ferry_fail(err, FERRY_PEER, "descriptors were lost on the way");
    }
    return 0;
}

static int expect(int fd, int64_t deadline_ns, const char *what, struct ferry_error *err)
{
    char word[WORD_MAX];
    int rc = hear(fd, deadline_ns, word, NULL, err);

    if (rc == 0 && !ferry_streq(word, what)) {
        return ferry_fail(err, FERRY_PEER, "said '%s', not '%s'", word, what);
    }
    return rc;
}

/* ---- the predecessor --------------------------------------------------------------------------
 */

void handover_end(struct handover *h)
{
    int code;

    if (h->pid > 0) {
        kill(h->pid, SIGKILL);
        (void)ferry_wait_child(h->pid, ferry_now_ns() + END_NS, &code, NULL);
        h->pid = -1;
    }
    ferry_closep(&h->fd);
    h->fd = -1;
}

/* Why it did not become ready; it is gone then. */
static int not_ready(struct handover *h, struct ferry_error *err)
{
    bool gone = err->cls == FERRY_NOT_FOUND;
    int code = 0;

    if (gone && ferry_wait_child(h->pid, ferry_now_ns() + END_NS, &code, NULL) == 0) {
        h->pid = -1;
        ferry_fail(err, FERRY_FATAL, "it ended with %d, its own words are above", code);
    }
    handover_end(h);
    return ferry_wrap(err, "successor is not ready");
}

static int check_ready(struct handover *h, struct ferry_error *err)
{
    char word[WORD_MAX], more[WORD_MAX] = "";
    unsigned version = 0;
    int rc = hear(h->fd, ferry_now_ns() + READY_NS, word, NULL, err);

    if (rc == 0 && sscanf(word, "ready %u %63s", &version, more) < 1) {
        rc = ferry_fail(err, FERRY_PEER, "it said '%s'", word);
    }
    if (rc == 0 && version != RELAY_STATE_VERSION) {
        rc = ferry_fail(err, FERRY_PEER, "it takes states of version %u, this one has version %d",
                        version, RELAY_STATE_VERSION);
    }
    h->takes_denials = ferry_streq(more, takes_denials);
    return rc < 0 ? not_ready(h, err) : 0;
}

/* Its environment, without what was meant for this process alone. */
static char **successor_environment(const char *names)
{
    size_t n = 0, used = 0;

    while (environ[n]) {
        n++;
    }
    char **env = ferry_xcalloc(n + 2, sizeof(*env));
    for (size_t i = 0; i < n; i++) {
        if (!ferry_str_starts(environ[i], "LISTEN_FDNAMES=")) {
            env[used++] = environ[i];
        }
    }
    env[used] = ferry_asprintf("LISTEN_FDNAMES=%s", names);
    return env;
}

static int spawn(struct handover *h, const struct relay_self *self, int fd, struct ferry_error *err)
{
    /* Only where it is needed: what was built before knows nothing of a directory. */
    bool out_of_reach = self->dir >= 0 && access(self->exe, X_OK) < 0;
    const int fds[] = {fd, self->dir};
    char **env = successor_environment(out_of_reach ? RELAY_SELF_FD_NAMES : fd_name);
    char *const *argv = self->argv;
    size_t n = 0, args = 0;

    while (env[n + 1]) {
        n++;
    }
    while (argv[args]) {
        args++;
    }
    /* The file by its path, whatever name it was called by. */
    const char **called = ferry_xcalloc(args + 2, sizeof(*called));
    called[0] = self->exe;
    for (size_t i = 1; i < args; i++) {
        called[i] = argv[i];
    }
    const struct ferry_spawn s = {.argv = called,
                                  .env = (const char *const *)env,
                                  .out_fd = -1,
                                  .pass_fds = fds,
                                  .n_pass_fds = out_of_reach ? 2 : 1,
                                  .program_dir = out_of_reach ? self->dir : 0};
    int rc = ferry_spawn(&s, &h->pid, err);
    free(env[n]);
    free(env);
    free(called);
    return rc;
}

int handover_start(struct handover *h, const struct relay_self *self, struct ferry_error *err)
{
    int pair[2];

    *h = (struct handover){.fd = -1, .pid = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return ferry_fail_errno(err, errno, "making a pair of sockets");
    }
    int rc = spawn(h, self, pair[1], err);
    close(pair[1]);
    h->fd = pair[0];
    if (rc < 0) {
        handover_end(h);
        return ferry_wrap(err, "starting %s", self->exe);
    }
    return check_ready(h, err);
}

static int send_all(const struct handover *h, int image_fd, const struct relay_fds *fds,
                    struct ferry_error *err)
{
    char word[WORD_MAX];

    snprintf(word, sizeof(word), "state %zu", fds->n);
    int rc = say(h->fd, word, &image_fd, 1, err);
    for (size_t at = 0; rc == 0 && at < fds->n; at += BATCH) {
        size_t n = fds->n - at < BATCH ? fds->n - at : BATCH;

        rc = say(h->fd, "fds", fds->fd + at, n, err);
    }
    return rc;
}

/* Ends it. Dead it can say nothing more; what it said last decides whether it had taken over. */
static bool check_dead(struct handover *h)
{
    int fd = ferry_take_fd(&h->fd);
    char word[WORD_MAX] = "";
    bool taken = false;

    handover_end(h);
    while (!taken && hear(fd, 0, word, NULL, NULL) == 0) {
        taken = ferry_streq(word, "taken");
    }
    close(fd);
    return taken;
}

int handover_give(struct handover *h, int image_fd, const struct relay_fds *fds,
                  struct ferry_error *err)
{
    int rc;

    if ((rc = send_all(h, image_fd, fds, err)) < 0 ||
        (rc = expect(h->fd, ferry_now_ns() + PREPARED_NS, "prepared", err)) < 0 ||
        (rc = say(h->fd, "commit", NULL, 0, err)) < 0 ||
        (rc = expect(h->fd, ferry_now_ns() + TAKEN_NS, "taken", err)) < 0) {
        return check_dead(h) ? 0 : ferry_wrap(err, "successor does not take over");
    }
    return 0;
}

/* ---- the successor ----------------------------------------------------------------------------
 */

int handover_find(void)
{
    const char *names = getenv("LISTEN_FDNAMES");

    if (!names || !((ferry_streq(names, fd_name) && ferry_listen_fds() == 1) ||
                    (ferry_streq(names, RELAY_SELF_FD_NAMES) && ferry_listen_fds() == 2))) {
        return -1;
    }
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return FERRY_LISTEN_FDS_START;
}

int handover_receive(int fd, int *ret_image, struct relay_fds *ret, struct ferry_error *err)
{
    char word[WORD_MAX];
    struct relay_fds image = {0};
    size_t n = 0;

    snprintf(word, sizeof(word), "ready %d %s", RELAY_STATE_VERSION, takes_denials);
    int rc = say(fd, word, NULL, 0, err);
    rc = rc < 0 ? rc : hear(fd, ferry_now_ns() + READY_NS, word, &image, err);
    if (rc == 0 &&
        (sscanf(word, "state %zu", &n) != 1 || n > RELAY_STATE_FDS_MAX || image.n != 1)) {
        rc = ferry_fail(err, FERRY_PEER, "it said '%s'", word);
    }
    while (rc == 0 && ret->n < n) {
        rc = hear(fd, ferry_now_ns() + PREPARED_NS, word, ret, err);
        if (rc == 0 && (!ferry_streq(word, "fds") || ret->n > n)) {
            rc = ferry_fail(err, FERRY_PEER, "it said '%s' with %zu descriptors", word, ret->n);
        }
    }
    if (rc < 0) {
        relay_fds_done(&image, true);
        return ferry_wrap(err, "predecessor");
    }
    *ret_image = relay_fds_take(&image, 0);
    relay_fds_done(&image, true);
    return 0;
}

int handover_take(int fd, struct ferry_error *err)
{
    int rc = say(fd, "prepared", NULL, 0, err);

    rc = rc < 0 ? rc : expect(fd, INT64_MAX, "commit", err);
    /* Dead without having gone on: it would have ended this process first. */
    if (rc == -FERRY_NOT_FOUND) {
        return 0;
    }
    return rc < 0 ? ferry_wrap(err, "predecessor") : say(fd, "taken", NULL, 0, err);
}
