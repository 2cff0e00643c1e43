/* Theory of operation. Two lists, the oldest first: strangers and those that are known. Who comes
 * is judged at once, by a walk over the strangers, of which there are as many as their share. One
 * thread looks at all deadlines, which the connections' own threads set without a lock.
 *
 * A connection is ended by shutting its socket down: its own thread, in libmicrohttpd, then sees
 * the end of it and cleans up, which takes it off the list before the socket is closed, so that no
 * other socket can have its number while it is listed. */
#include "http/server_doors.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/str.h"

#define LOOK_NS (500 * FERRY_NS_PER_MS)
#define TELL_NS (60 * FERRY_NS_PER_S)

struct visitors {
    struct visitor *first, *last;
};

struct doors {
    const char *name;
    struct doors_limits limits;
    pthread_mutex_t lock; /* for all below, and for those that are listed */
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopping;
    struct visitors strangers, known;
    uint64_t crowded, late; /* how many were ended since it was last told */
    int64_t told_ns;
};

/* ---- lists -------------------------------------------------------------------------------------
 */

static void append(struct visitors *list, struct visitor *v)
{
    v->prev = list->last;
    v->next = NULL;
    *(list->last ? &list->last->next : &list->first) = v;
    list->last = v;
}

static void take_off(struct visitors *list, struct visitor *v)
{
    *(v->prev ? &v->prev->next : &list->first) = v->next;
    *(v->next ? &v->next->prev : &list->last) = v->prev;
}

static struct visitors *list_of(struct doors *d, const struct visitor *v)
{
    return v->known ? &d->known : &d->strangers;
}

/* ---- ending ------------------------------------------------------------------------------------
 */

static void end(struct visitor *v)
{
    v->ended = true;
    shutdown(v->fd, SHUT_RDWR);
}

static void end_late(struct doors *d, struct visitors *list, int64_t now)
{
    for (struct visitor *v = list->first; v; v = v->next) {
        int64_t deadline = atomic_load_explicit(&v->deadline_ns, memory_order_relaxed);

        if (!v->ended && deadline != 0 && now > deadline) {
            end(v);
            d->late++;
        }
    }
}

/* One line a minute: who knocks all the time must not fill the disk. */
static void tell(struct doors *d, int64_t now)
{
    if ((d->crowded || d->late) && now - d->told_ns > TELL_NS) {
        ferry_warn("connections were ended", F_STR("server", d->name),
                   F_UINT("tookTooLong", d->late), F_UINT("madeRoom", d->crowded));
        d->crowded = d->late = 0;
        d->told_ns = now;
    }
}

static void *run(void *ctx)
{
    struct doors *d = ctx;

    pthread_mutex_lock(&d->lock);
    while (!d->stopping) {
        ferry_cond_wait(&d->changed, &d->lock, ferry_now_ns() + LOOK_NS);
        int64_t now = ferry_now_ns();

        end_late(d, &d->strangers, now);
        end_late(d, &d->known, now);
        tell(d, now);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- who comes and goes ------------------------------------------------------------------------
 */

static void make_room(struct doors *d, const struct doors_address *address)
{
    struct visitor *oldest = NULL, *oldest_of_address = NULL;
    struct doors_crowd crowd = {0};

    for (struct visitor *v = d->strangers.first; v; v = v->next) {
        bool same = doors_same_address(&v->address, address);

        if (v->ended) {
            continue;
        }
        oldest = oldest ? oldest : v;
        oldest_of_address = oldest_of_address || !same ? oldest_of_address : v;
        crowd.all++;
        crowd.same_address += same;
    }
    enum doors_verdict verdict = doors_decide(&d->limits, &crowd);
    struct visitor *v = verdict == DOORS_END_OLDEST_OF_ADDRESS ? oldest_of_address : oldest;
    if (verdict != DOORS_LET_IN && v) {
        end(v);
        d->crowded++;
    }
}

void doors_enter(struct doors *d, struct visitor *v, int fd, const struct sockaddr *from)
{
    pthread_mutex_lock(&d->lock);
    v->fd = fd;
    v->address = doors_address_of(from);
    v->listed = true;
    doors_set_phase(d, v, DOORS_ARRIVED);
    make_room(d, &v->address);
    append(&d->strangers, v);
    pthread_mutex_unlock(&d->lock);
}

void doors_leave(struct doors *d, struct visitor *v)
{
    pthread_mutex_lock(&d->lock);
    if (v->listed) {
        take_off(list_of(d, v), v);
        v->listed = false;
    }
    pthread_mutex_unlock(&d->lock);
}

void doors_set_known(struct doors *d, struct visitor *v, bool known)
{
    pthread_mutex_lock(&d->lock);
    if (v->listed && v->known != known) {
        take_off(list_of(d, v), v);
        v->known = known;
        append(list_of(d, v), v);
    }
    pthread_mutex_unlock(&d->lock);
}

/* `known` is changed by the connection's own thread alone, which this is. */
void doors_set_phase(struct doors *d, struct visitor *v, enum doors_phase phase)
{
    int64_t patience = doors_patience_ns(&d->limits, phase, v->known);

    atomic_store_explicit(&v->deadline_ns, patience ? ferry_now_ns() + patience : 0,
                          memory_order_relaxed);
}

/* ---- life --------------------------------------------------------------------------------------
 */

struct doors *doors_new(const char *name, const struct doors_limits *limits)
{
    struct doors *d = ferry_xcalloc(1, sizeof(*d));

    d->name = name;
    d->limits = *limits;
    d->told_ns = ferry_now_ns() - TELL_NS;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    d->started = pthread_create(&d->thread, NULL, run, d) == 0;
    if (!d->started) {
        ferry_warn("connections that take too long are not ended: no thread",
                   F_STR("server", name));
    }
    return d;
}

void doors_free(struct doors *d)
{
    if (!d) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (d->started) {
        pthread_join(d->thread, NULL);
    }
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
