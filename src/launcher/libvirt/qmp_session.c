/* Theory of operation. The monitor's socket takes one connection at a time, and the connection must
 * survive this process. So a copy of the descriptor lies in the queue of a socket pair, whose both
 * ends are held by ferry-init as well: what was sent and not received yet lives in the kernel. At
 * most one descriptor is in the queue. The next launcher receives it, sends it back and goes on. */
#include "launcher/libvirt/qmp_session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

enum { STORE_IN, STORE_OUT };

struct qmp_session {
    char *path;
    int store[2]; /* written to; read from */
    pthread_mutex_t lock;
    struct qmp *qmp; /* guarded by lock; NULL = none */
};

/* ---- the store ---------------------------------------------------------------------------------
 */

union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int))];
};

static void store_put(const struct qmp_session *k, int fd)
{
    union control control = {0};
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    if (k->store[STORE_IN] >= 0 &&
        sendmsg(k->store[STORE_IN], &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        ferry_warn("QMP session would not survive a restart of this launcher");
    }
}

/* What is in the store, which is empty then; -1 when it was. */
static int store_take(const struct qmp_session *k)
{
    union control control = {0};
    char byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof(control.space)};
    int fd = -1;

    if (k->store[STORE_OUT] < 0 ||
        recvmsg(k->store[STORE_OUT], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
        return -1;
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd))) {
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    }
    return fd;
}

/* ---- the connection ----------------------------------------------------------------------------
 */

struct qmp_session *qmp_session_new(const char *path, const int store[2])
{
    struct qmp_session *k = ferry_xcalloc(1, sizeof(*k));

    k->path = ferry_strdup(path);
    memcpy(k->store, store, sizeof(k->store));
    pthread_mutex_init(&k->lock, NULL);
    int fd = store_take(k);
    if (fd >= 0) {
        store_put(k, fd);
        k->qmp = qmp_adopt(fd);
        ferry_info("QMP session resumed after a restart");
    }
    return k;
}

void qmp_session_free(struct qmp_session *k)
{
    if (k) {
        qmp_close(k->qmp);
        ferry_closep(&k->store[STORE_IN]);
        ferry_closep(&k->store[STORE_OUT]);
        pthread_mutex_destroy(&k->lock);
        free(k->path);
        free(k);
    }
}

static void close_locked(struct qmp_session *k)
{
    ferry_cleanup_fd int stored = store_take(k);

    (void)stored;
    qmp_close(k->qmp);
    k->qmp = NULL;
}

/* QEMU is gone when the other end is closed. */
static bool dead(const struct qmp *q)
{
    char byte;

    return recv(qmp_fd(q), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static int open_locked(struct qmp_session *k, int64_t deadline_ns, struct ferry_error *err)
{
    if (k->qmp && dead(k->qmp)) {
        close_locked(k);
    }
    if (k->qmp) {
        return 0;
    }
    int rc = qmp_open(k->path, deadline_ns, &k->qmp, err);
    if (rc == 0) {
        store_put(k, qmp_fd(k->qmp));
    }
    return rc;
}

int qmp_session_open(struct qmp_session *k, int64_t deadline_ns, struct ferry_error *err)
{
    pthread_mutex_lock(&k->lock);
    int rc = open_locked(k, deadline_ns, err);
    pthread_mutex_unlock(&k->lock);
    return rc;
}

void qmp_session_close(struct qmp_session *k)
{
    pthread_mutex_lock(&k->lock);
    close_locked(k);
    pthread_mutex_unlock(&k->lock);
}

int qmp_session_execute(struct qmp_session *k, const struct qmp_command *c, int64_t deadline_ns,
                        yyjson_doc **ret, struct ferry_error *err)
{
    pthread_mutex_lock(&k->lock);
    int rc = open_locked(k, deadline_ns, err);
    if (rc == 0) {
        rc = qmp_execute(k->qmp, c, deadline_ns, ret, err);
    }
    if (k->qmp && (rc == -FERRY_FATAL || dead(k->qmp))) {
        close_locked(k);
    }
    pthread_mutex_unlock(&k->lock);
    return rc;
}

int qmp_session_migration_status(struct qmp_session *k, char *ret, size_t size, int64_t deadline_ns,
                                 struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = qmp_session_execute(k, &(struct qmp_command){.name = "query-migrate"}, deadline_ns,
                                 &doc, err);

    if (rc < 0) {
        return rc;
    }
    const char *s = api_json_str(yyjson_doc_get_root(doc), "/return/status");
    snprintf(ret, size, "%s", s ? s : "none");
    yyjson_doc_free(doc);
    return 0;
}
