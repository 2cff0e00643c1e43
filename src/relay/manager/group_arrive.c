/* Connections at a target that have not proven themselves yet. They do not count as streams: they
 * have a number of their own, each address a part of it, and whoever has been there longest makes
 * room for the next (http/doors_decide.h). Each has its deadline by the thread that greets it.
 *
 * Such a connection is ended by shutting down a descriptor of the group's own for the same socket,
 * which is closed under the lock: the thread's descriptor may be closed, and its number another
 * one's, at any time. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "relay/manager/group_priv.h"

enum {
    /* A source opens all its streams at once. */
    ARRIVING_MAX = GROUP_STREAMS_MAX + 64,
    LEAVING_MAX = ARRIVING_MAX, /* that were ended, and whose threads do not know it yet */
};

static const struct doors_limits limits = {.share = ARRIVING_MAX, .per_address = GROUP_STREAMS_MAX};

/* Ends one, when there is no room for another one from there. */
static void make_room(struct relay_group *g, const struct doors_address *address)
{
    struct group_entry *oldest = NULL, *oldest_of_address = NULL;
    struct doors_crowd crowd = {0};

    for (struct group_entry *e = g->streams; e; e = e->next) { /* the newest first */
        bool same = doors_same_address(&e->address, address);

        if (!e->arriving || e->ended) {
            continue;
        }
        oldest = e;
        oldest_of_address = same ? e : oldest_of_address;
        crowd.all++;
        crowd.same_address += same;
    }
    enum doors_verdict verdict = doors_decide(&limits, &crowd);
    struct group_entry *e = verdict == DOORS_END_OLDEST_OF_ADDRESS ? oldest_of_address : oldest;
    if (verdict != DOORS_LET_IN && e) {
        e->ended = true;
        shutdown(e->watch_fd, SHUT_RDWR);
    }
}

static struct doors_address address_of(int fd)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    bool known = getpeername(fd, (struct sockaddr *)&sa, &len) == 0;

    return doors_address_of(known ? (const struct sockaddr *)&sa : NULL);
}

bool group_arrivals_fit(struct relay_group *g)
{
    pthread_mutex_lock(&g->lock);
    bool fit = g->n_arriving < ARRIVING_MAX + LEAVING_MAX;
    pthread_mutex_unlock(&g->lock);
    return fit;
}

int group_arrive(struct relay_group *g, struct group_entry *e)
{
    e->watch_fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
    if (e->watch_fd < 0) {
        return errno;
    }
    e->address = address_of(e->fd);
    pthread_mutex_lock(&g->lock);
    make_room(g, &e->address);
    e->arriving = true;
    g->n_arriving++;
    g->n_streams--;
    pthread_mutex_unlock(&g->lock);
    return 0;
}

void group_leave(struct relay_group *g, struct group_entry *e)
{
    *(e->arriving ? &g->n_arriving : &g->n_streams) -= 1;
    e->arriving = false;
    ferry_closep(&e->watch_fd);
    e->watch_fd = -1;
}

bool group_take_place(void *ctx)
{
    struct group_entry *e = ctx;
    struct relay_group *g = e->group;

    pthread_mutex_lock(&g->lock);
    bool room = !e->ended && g->n_streams < GROUP_STREAMS_MAX;
    if (room && e->arriving) {
        group_leave(g, e);
        g->n_streams++;
    }
    pthread_mutex_unlock(&g->lock);
    return room;
}
