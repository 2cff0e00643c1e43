/* Theory of operation. Each descriptor is kept under a name of its own, which says its place,
 * because the manager promises no order. They are kept without being watched (FDPOLL=0): a unix
 * socket whose peer has left may still hold bytes, and would be dropped otherwise. */
#include "relay/handover/notify.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "relay/state/state.h"

#define BARRIER_US UINT64_C(10000000)
static const char image_name[] = "ferry-state", fd_prefix[] = "ferry-fd-";

bool notify_there(void)
{
    return !ferry_str_empty(getenv("NOTIFY_SOCKET"));
}

/* `fd` < 0: none. */
static int tell(const char *text, int fd, struct ferry_error *err)
{
    int rc = sd_pid_notify_with_fds(0, 0, text, &fd, fd >= 0);

    if (rc < 0) {
        return ferry_fail_errno(err, -rc, "telling the service manager");
    }
    return rc > 0 ? 0 : ferry_fail(err, FERRY_NOT_FOUND, "there is no service manager");
}

void notify_say(const char *text)
{
    (void)tell(text, -1, NULL);
}

int notify_barrier(struct ferry_error *err)
{
    int rc = sd_notify_barrier(0, BARRIER_US);

    if (rc < 0) {
        return ferry_fail_errno(err, -rc, "waiting for the service manager");
    }
    return rc > 0 ? 0 : ferry_fail(err, FERRY_NOT_FOUND, "there is no service manager");
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

/* Not by sd_listen_fds(): that wants LISTEN_PID, which a process that gives descriptors to its own
 * child cannot know beforehand, and a relay of another version did not send. */
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
