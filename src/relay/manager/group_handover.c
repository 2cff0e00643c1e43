/* A move that changes its process.
 *
 * Pausing: the accepting thread ends, every stream over ferry/1 leaves its thread as it is
 * (connection included) and stays in the list as a parked session or, if nothing was done about it
 * yet, as a descriptor. From then on nobody touches the group's sockets. What happens next is one
 * of two things: it is resumed, here, and nothing was lost but time; or it was saved, another
 * process has restored it, and it is abandoned here. A restored group is in every respect a paused
 * one. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "relay/manager/group_priv.h"
#include "relay/stream/registry.h"
#include "relay/stream/session.h"

static bool can_leave(const struct relay_group *g)
{
    return g->spec->mode == RELAY_FERRY;
}

void relay_group_pause(struct relay_group *g)
{
    eventfd_t ignored;

    group_stop_accepting(g);
    if (!can_leave(g)) {
        return;
    }
    atomic_store(&g->pausing, true);
    eventfd_write(g->stop_fd, 1);
    for (struct group_entry *e = g->streams, *next; e; e = next) {
        next = e->next;
        if (e->started) {
            pthread_join(e->thread, NULL);
            e->started = false;
        }
        if (e->finished) {
            group_drop_entry(g, e);
        }
    }
    (void)eventfd_read(g->stop_fd, &ignored);
    (void)eventfd_read(g->finished_fd, &ignored);
    atomic_store(&g->pausing, false);
}

void relay_group_resume(struct relay_group *g)
{
    struct ferry_error err;

    for (struct group_entry *e = g->streams, *next; e && can_leave(g); e = next) {
        next = e->next;
        int rc = e->started ? 0 : group_start_thread(e);
        if (rc == 0) {
            continue;
        }
        ferry_error("stream lost: no thread", RELAY_STREAM_FIELDS(&e->stream),
                    F_STR("error", strerror(rc)));
        if (e->session) {
            relay_session_cancel(e->session);
        } else {
            close(e->fd);
        }
        group_drop_entry(g, e);
    }
    if (group_start_accepting(g, &err) < 0) {
        ferry_error("accept failed, retrying", F_STR("key", g->spec->key), F_ERR(&err));
    }
}

static void save_stream(const struct relay_group *g, const struct group_entry *e,
                        struct relay_state_stream *ret, struct relay_fds *fds)
{
    *ret = (struct relay_state_stream){
        .channel = (uint32_t)(e->stream.channel - g->spec->channels),
        .since_ms = e->stats.since_ms,
        .fresh = !e->session,
    };
    memcpy(ret->peer, e->stats.peer, sizeof(ret->peer));
    ret->fd = relay_fds_add(fds, e->session ? relay_session_save(e->session, ret) : e->fd);
}

void relay_group_save(struct relay_group *g, struct relay_state_group *ret, struct relay_fds *fds)
{
    *ret = (struct relay_state_group){.spec = g->spec, .dir = relay_fds_add(fds, g->dirfd)};
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        ret->listeners[i] = relay_fds_add(fds, g->listeners[i]);
        ret->ports[i] = g->ports[i];
    }
    ret->n_tombs = relay_registry_tombs(g->registry, &ret->tombs);
    if (!can_leave(g)) {
        return;
    }
    ret->streams = ferry_xcalloc(relay_group_stream_count(g) + 1, sizeof(*ret->streams));
    for (const struct group_entry *e = g->streams; e; e = e->next) {
        save_stream(g, e, &ret->streams[ret->n_streams++], fds);
    }
}

/* Whether a descriptor that came from elsewhere is the socket that it should be. */
static int check_socket(int fd, bool is_unix, bool listening, struct ferry_error *err)
{
    int domain = 0, type = 0, accepts = 0;
    socklen_t a = sizeof(domain), b = sizeof(type), c = sizeof(accepts);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &a) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &b) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &c) < 0) {
        return ferry_fail_errno(err, errno, "a descriptor that should be a socket");
    }
    if ((domain == AF_UNIX) != is_unix || type != SOCK_STREAM || !accepts == listening) {
        return ferry_fail(err, FERRY_PEER, "a descriptor is not the socket that it should be");
    }
    return 0;
}

static int restore_listeners(struct relay_group *g, const struct relay_state_group *from,
                             struct relay_fds *fds, struct ferry_error *err)
{
    g->dirfd = relay_fds_take(fds, from->dir);
    for (size_t i = 0; i < g->spec->n_channels; i++) {
        g->listeners[i] = relay_fds_take(fds, from->listeners[i]);
        g->ports[i] = from->ports[i];
        int rc = check_socket(g->listeners[i], g->spec->role == RELAY_SOURCE, true, err);

        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int restore_stream(struct relay_group *g, struct relay_state_stream *from,
                          struct relay_fds *fds, struct ferry_error *err)
{
    int fd = relay_fds_take(fds, from->fd);
    int rc = fd >= 0 ? check_socket(fd, true, false, err) : 0;

    if (rc < 0) {
        close(fd);
        return rc;
    }
    struct group_entry *e = group_add_entry(g, from->channel, fd);
    e->stats.since_ms = from->since_ms;
    memcpy(e->stats.peer, from->peer, sizeof(from->peer));
    if (from->fresh) {
        return 0;
    }
    e->fd = -1;
    e->session = relay_session_restore(&e->stream, from, fd);
    return e->session ? 0 : ferry_fail(err, FERRY_RETRY, "no descriptor left for a stream");
}

static void abandon_streams(struct relay_group *g)
{
    for (struct group_entry *e = g->streams, *next; e; e = next) {
        next = e->next;
        if (e->session) {
            relay_session_abandon(e->session);
        } else if (e->fd >= 0) {
            close(e->fd);
        }
        group_drop_entry(g, e);
    }
}

int relay_group_restore(struct relay_state_group *from, struct relay_fds *fds,
                        const struct relay_env *env, struct relay_group **ret,
                        struct ferry_error *err)
{
    struct relay_group *g = group_new(ferry_take_ptr(from->spec), env);
    int rc = group_open_events(g, err);

    rc = rc < 0 ? rc : restore_listeners(g, from, fds, err);
    for (size_t i = 0; rc == 0 && i < from->n_tombs; i++) {
        relay_registry_bury(g->registry, &from->tombs[i]);
    }
    for (size_t i = 0; rc == 0 && i < from->n_streams; i++) {
        rc = restore_stream(g, &from->streams[i], fds, err);
    }
    if (rc < 0) {
        relay_group_abandon(g);
        relay_group_stop(g);
        return rc;
    }
    *ret = g;
    return 0;
}

void relay_group_abandon(struct relay_group *g)
{
    g->handed_over = true;
    group_close_listeners(g);
    if (can_leave(g)) {
        abandon_streams(g);
    }
}
