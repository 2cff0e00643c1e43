/* Theory of operation. One thread asks all launchers side by side: a question is a connection to
 * the launcher's control socket, whose other end may be a launcher that hangs, or none yet (the
 * socket listens before there is one), so that every question has its time and none holds up
 * another.
 *
 * The list has the lock; connections are the thread's alone. What is forgotten is freed by the
 * thread. */
#include "pods/readiness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "pods/readiness_decide.h"

#define QUESTION "GET /v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n"

enum { ANSWER_MAX = 32, CONNECT_MS = 100 };

struct pod {
    struct pod *next;
    char *uid;
    struct readiness_state state; /* guarded by the lock, as is `gone` */
    bool gone;
    int fd; /* -1 = nothing is asked */
    int64_t deadline_ms;
    char answer[ANSWER_MAX + 1];
    size_t n;
};

struct readiness {
    struct readiness_config cfg;
    int wake_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    struct pod *pods;
    size_t n;
    bool stopping;
};

static int64_t now_ms(void)
{
    return ferry_now_ns() / FERRY_NS_PER_MS;
}

static struct pod *find_locked(struct readiness *r, const char *uid)
{
    struct pod *p = r->pods;

    while (p && (p->gone || strcmp(p->uid, uid) != 0)) {
        p = p->next;
    }
    return p;
}

static void wake(struct readiness *r)
{
    eventfd_write(r->wake_fd, 1);
}

/* ---- one question -----------------------------------------------------------------------------
 */

static bool ask(struct readiness *r, struct pod *p)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s/launcher.sock", r->cfg.pods_dir, p->uid);
    ferry_cleanup_fd int fd =
        ferry_unix_connect(path, ferry_now_ns() + CONNECT_MS * FERRY_NS_PER_MS, NULL);

    if (fd < 0 || send(fd, QUESTION, strlen(QUESTION), MSG_NOSIGNAL | MSG_DONTWAIT) !=
                      (ssize_t)strlen(QUESTION)) {
        return false;
    }
    p->fd = ferry_take_fd(&fd);
    p->n = 0;
    p->deadline_ms = now_ms() + READINESS_TIMEOUT_MS;
    return true;
}

/* 1 = a good answer, 0 = a bad one, -1 = none yet. */
static int listen_to(struct pod *p, short events)
{
    if (events) {
        ssize_t got = recv(p->fd, p->answer + p->n, ANSWER_MAX - p->n, MSG_DONTWAIT);

        if (got > 0) {
            p->n += (size_t)got;
            p->answer[p->n] = '\0';
        }
        if (p->n == ANSWER_MAX || got == 0) {
            p->answer[p->n] = '\0';
            return readiness_answer_good(p->answer);
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return 0;
        }
    }
    return now_ms() >= p->deadline_ms ? 0 : -1;
}

static void hang_up(struct pod *p)
{
    ferry_closep(&p->fd);
    p->fd = -1;
}

static void judge(struct readiness *r, struct pod *p, bool good)
{
    hang_up(p);
    pthread_mutex_lock(&r->lock);
    bool known = readiness_known(&p->state);
    bool changed =
        (readiness_decide(&p->state, good, now_ms()) || known != readiness_known(&p->state)) &&
        !p->gone;
    bool ready = p->state.ready;
    pthread_mutex_unlock(&r->lock);
    if (changed) {
        ferry_info(ready ? "launcher ready" : "launcher does not answer any more",
                   F_STR("pod", p->uid));
        r->cfg.changed(r->cfg.ctx, p->uid);
    }
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Frees what is forgotten; the pods that are left, as an array of the caller's. */
static struct pod **take_stock(struct readiness *r, size_t *ret_n, bool *ret_stopping)
{
    size_t n = 0;

    pthread_mutex_lock(&r->lock);
    struct pod **list = ferry_xcalloc(r->n + 1, sizeof(struct pod *));
    for (struct pod **at = &r->pods; *at;) {
        struct pod *p = *at;

        if (!p->gone) {
            list[n++] = p;
            at = &p->next;
            continue;
        }
        *at = p->next;
        r->n--;
        hang_up(p);
        free(p->uid);
        free(p);
    }
    *ret_stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    *ret_n = n;
    return list;
}

/* Asks who is due; when the next one is. */
static int64_t ask_due(struct readiness *r, struct pod **pods, size_t n)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < n; i++) {
        if (pods[i]->fd < 0 && now_ms() >= pods[i]->state.next_ms && !ask(r, pods[i])) {
            judge(r, pods[i], false);
        }
        int64_t due = pods[i]->fd < 0 ? pods[i]->state.next_ms : pods[i]->deadline_ms;
        next = due < next ? due : next;
    }
    return next;
}

static void wait_and_hear(struct readiness *r, struct pod **pods, size_t n, int64_t until_ms)
{
    struct pollfd *fds = ferry_xcalloc(n + 1, sizeof(*fds));
    int64_t left = until_ms - now_ms();
    eventfd_t ignored;

    fds[n] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
    for (size_t i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = pods[i]->fd, .events = POLLIN};
    }
    int got = poll(fds, n + 1,
                   left < 0                     ? 0
                   : left > READINESS_PERIOD_MS ? READINESS_PERIOD_MS
                                                : (int)left);
    if (got > 0 && fds[n].revents) {
        eventfd_read(r->wake_fd, &ignored);
    }
    for (size_t i = 0; i < n; i++) {
        int answer = pods[i]->fd < 0 ? -1 : listen_to(pods[i], got > 0 ? fds[i].revents : 0);

        if (answer >= 0) {
            judge(r, pods[i], answer == 1);
        }
    }
    free(fds);
}

static void *run(void *arg)
{
    struct readiness *r = arg;

    for (bool stopping = false; !stopping;) {
        size_t n;
        struct pod **pods = take_stock(r, &n, &stopping);

        if (!stopping) {
            wait_and_hear(r, pods, n, ask_due(r, pods, n));
        }
        free(pods);
    }
    return NULL;
}

/* ---- calls ------------------------------------------------------------------------------------
 */

int readiness_start(const struct readiness_config *cfg, struct readiness **ret,
                    struct ferry_error *err)
{
    struct readiness *r = ferry_xcalloc(1, sizeof(*r));

    r->cfg = *cfg;
    pthread_mutex_init(&r->lock, NULL);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = r->wake_fd < 0 ? errno : pthread_create(&r->thread, NULL, run, r);
    if (rc != 0) {
        ferry_closep(&r->wake_fd);
        pthread_mutex_destroy(&r->lock);
        free(r);
        return ferry_fail_errno(err, rc, "starting to ask launchers");
    }
    *ret = r;
    return 0;
}

void readiness_stop(struct readiness *r)
{
    bool stopping;
    size_t n;

    if (!r) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    for (struct pod *p = r->pods; p; p = p->next) {
        p->gone = true;
    }
    pthread_mutex_unlock(&r->lock);
    wake(r);
    pthread_join(r->thread, NULL);
    free(take_stock(r, &n, &stopping));
    ferry_closep(&r->wake_fd);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void readiness_watch(struct readiness *r, const char *uid)
{
    pthread_mutex_lock(&r->lock);
    bool known = find_locked(r, uid) != NULL;
    if (!known) {
        struct pod *p = ferry_xcalloc(1, sizeof(*p));

        *p = (struct pod){.next = r->pods, .uid = ferry_strdup(uid), .fd = -1};
        r->pods = p;
        r->n++;
    }
    pthread_mutex_unlock(&r->lock);
    if (!known) {
        wake(r);
    }
}

void readiness_forget(struct readiness *r, const char *uid)
{
    pthread_mutex_lock(&r->lock);
    struct pod *p = find_locked(r, uid);
    if (p) {
        p->gone = true;
    }
    pthread_mutex_unlock(&r->lock);
    if (p) {
        wake(r);
    }
}

bool readiness_of(struct readiness *r, const char *uid, bool *ret_ready)
{
    pthread_mutex_lock(&r->lock);
    const struct pod *p = find_locked(r, uid);
    bool known = p && readiness_known(&p->state);
    *ret_ready = known && p->state.ready;
    pthread_mutex_unlock(&r->lock);
    return known;
}
