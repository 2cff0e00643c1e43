/* One thread looks at all of them every second. A connection is ended by shutting its socket down:
 * its own thread, in libmicrohttpd, then sees the end of it and cleans up, which removes it from
 * here before the socket is closed, so that no other socket can have its number while it is listed.
 */
#include "http/server_strangers.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/str.h"

struct strangers {
    pthread_mutex_t lock; /* for all below, and for those that are listed */
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopping;
    int64_t patience_ns;
    struct stranger *first;
};

static void end_old(struct strangers *s, int64_t now_ns)
{
    for (struct stranger *one = s->first; one; one = one->next) {
        if (!one->busy && now_ns - one->since_ns > s->patience_ns) {
            shutdown(one->fd, SHUT_RDWR);
        }
    }
}

static void *run(void *ctx)
{
    struct strangers *s = ctx;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        ferry_cond_wait(&s->changed, &s->lock, ferry_now_ns() + FERRY_NS_PER_S);
        end_old(s, ferry_now_ns());
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

struct strangers *strangers_new(int patience_s)
{
    struct strangers *s = ferry_xcalloc(1, sizeof(*s));

    s->patience_ns = patience_s * FERRY_NS_PER_S;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->started = pthread_create(&s->thread, NULL, run, s) == 0;
    if (!s->started) {
        ferry_warn("idle connections are not closed: no thread");
    }
    return s;
}

void strangers_free(struct strangers *s)
{
    if (!s) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->started) {
        pthread_join(s->thread, NULL);
    }
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void strangers_add(struct strangers *s, struct stranger *one, int fd)
{
    pthread_mutex_lock(&s->lock);
    *one =
        (struct stranger){.fd = fd, .since_ns = ferry_now_ns(), .listed = true, .next = s->first};
    if (s->first) {
        s->first->prev = one;
    }
    s->first = one;
    pthread_mutex_unlock(&s->lock);
}

void strangers_remove(struct strangers *s, struct stranger *one)
{
    pthread_mutex_lock(&s->lock);
    if (one->listed) {
        *(one->prev ? &one->prev->next : &s->first) = one->next;
        if (one->next) {
            one->next->prev = one->prev;
        }
        *one = (struct stranger){.fd = -1};
    }
    pthread_mutex_unlock(&s->lock);
}

void strangers_set_busy(struct strangers *s, struct stranger *one, bool busy)
{
    pthread_mutex_lock(&s->lock);
    one->busy = busy;
    one->since_ns = ferry_now_ns();
    pthread_mutex_unlock(&s->lock);
}
