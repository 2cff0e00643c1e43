/* Theory of operation. Each descriptor is kept under a name of its own, which says its place,
 * because the manager promises no order. They are kept without being watched (FDPOLL=0): a unix
 * socket whose peer has left may still hold bytes, and would be dropped otherwise. */
#include "relay/handover/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "relay/state/state.h"

#define BARRIER_NS (10 * FERRY_NS_PER_S)
static const char image_name[] = "ferry-state", fd_prefix[] = "ferry-fd-";

bool notify_there(void)
{
    return !ferry_str_empty(getenv("NOTIFY_SOCKET"));
}

static int send_to(const char *path, const char *text, int passed, struct ferry_error *err)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct iovec v = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr m = {.msg_name = &to, .msg_iov = &v, .msg_iovlen = 1};
    ferry_cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    size_t n = strlen(path);

    if (fd < 0 || (path[0] != '/' && path[0] != '@') || n >= sizeof(to.sun_path)) {
        return ferry_fail(err, FERRY_INVALID, "NOTIFY_SOCKET cannot be used");
    }
    memcpy(to.sun_path, path, n);
    to.sun_path[0] = path[0] == '@' ? '\0' : '/';
    m.msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (passed >= 0) {
        m.msg_control = control.buf;
        m.msg_controllen = sizeof(control.buf);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &passed, sizeof(int));
    }
    if (sendmsg(fd, &m, MSG_NOSIGNAL) < 0) {
        return ferry_fail_errno(err, errno, "telling the service manager");
    }
    return 0;
}

static int tell(const char *text, int passed, struct ferry_error *err)
{
    const char *path = getenv("NOTIFY_SOCKET");

    if (ferry_str_empty(path)) {
        return ferry_fail(err, FERRY_NOT_FOUND, "there is no service manager");
    }
    return send_to(path, text, passed, err);
}

void notify_say(const char *text)
{
    (void)tell(text, -1, NULL);
}

int notify_barrier(struct ferry_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return ferry_fail_errno(err, errno, "making a pipe");
    }
    ferry_cleanup_fd int here = ends[0];
    int rc = tell("BARRIER=1", ends[1], err);
    close(ends[1]);
    if (rc < 0) {
        return rc;
    }
    struct pollfd p = {.fd = here};
    int64_t deadline = ferry_now_ns() + BARRIER_NS;
    while ((rc = poll(&p, 1, ferry_ms_left(deadline))) < 0 && errno == EINTR) {
    }
    return rc > 0 ? 0 : ferry_fail(err, FERRY_RETRY, "the service manager does not answer");
}

/* ---- the descriptor store ---------------------------------------------------------------------
 */

static int store_one(const char *name, int fd, struct ferry_error *err)
{
    char text[96];

    snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
    return tell(text, fd, err);
}

int notify_store(int image_fd, const struct relay_fds *fds, size_t room, struct ferry_error *err)
{
    int rc = 0;

    if (fds->n + 1 > room) {
        return ferry_fail(err, FERRY_INVALID, "%zu descriptors do not go into a store for %zu",
                          fds->n + 1, room);
    }
    for (size_t i = 0; rc == 0 && i < fds->n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "%s%zu", fd_prefix, i);
        rc = store_one(name, fds->fd[i], err);
    }
    /* The image last: without it the others mean nothing. */
    rc = rc < 0 ? rc : store_one(image_name, image_fd, err);
    rc = rc < 0 ? rc : notify_barrier(err);
    if (rc < 0) {
        notify_forget(fds->n);
    }
    return rc;
}

void notify_forget(size_t n_fds)
{
    char text[96];

    snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", image_name);
    notify_say(text);
    for (size_t i = 0; i < n_fds; i++) {
        snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s%zu", fd_prefix, i);
        notify_say(text);
    }
    (void)notify_barrier(NULL);
}

static void put_at(struct relay_fds *f, size_t place, int fd)
{
    while (f->n <= place) {
        f->fd = ferry_xrealloc(f->fd, f->n + 1, sizeof(*f->fd));
        f->fd[f->n++] = -1;
    }
    if (f->fd[place] >= 0) {
        close(f->fd[place]);
    }
    f->fd[place] = fd;
}

/* Which of the passed descriptors are ours, by their names. */
static void sort_by_name(char *names, int n, int *image, struct relay_fds *fds)
{
    char *save = NULL;
    const char *name = strtok_r(names, ":", &save);

    for (int i = 0; i < n && name; i++, name = strtok_r(NULL, ":", &save)) {
        int fd = FERRY_LISTEN_FDS_START + i;
        long long place = 0;

        if (ferry_streq(name, image_name) && *image < 0) {
            *image = fd;
        } else if (ferry_str_starts(name, fd_prefix) &&
                   ferry_parse_int(name + strlen(fd_prefix), 0, RELAY_STATE_FDS_MAX - 1, &place,
                                   NULL) == 0) {
            put_at(fds, (size_t)place, fd);
        }
    }
}

int notify_stored(int *ret_image, struct relay_fds *ret, struct ferry_error *err)
{
    const char *given = getenv("LISTEN_FDNAMES");
    ferry_cleanup_free char *names = ferry_strdup(given ? given : "");
    int n = ferry_listen_fds();
    int image = -1;

    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDNAMES");
    sort_by_name(names, n, &image, ret);
    bool whole = image >= 0;
    for (size_t i = 0; i < ret->n; i++) {
        whole = whole && ret->fd[i] >= 0;
    }
    if (image < 0 && ret->n == 0) {
        return 0;
    }
    if (!whole) {
        size_t had = ret->n;

        ferry_closep(&image);
        relay_fds_done(ret, true);
        notify_forget(had);
        return ferry_fail(err, FERRY_PEER, "what the service manager kept is not complete");
    }
    *ret_image = image;
    return 1;
}
