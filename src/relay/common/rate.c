/* Theory of operation
 *
 * Each limit is a point in time: when the bytes that were read will have been sent at its rate. A
 * move that has read waits until that time has come, for its own limit and for the relay's. A
 * little of unused time may be made up for (BURST).
 *
 * Fairness: each move also has the point in time for its even share of the relay's limit, and while
 * the relay is busy it waits for the later of the two. The limit is shared among moves that want
 * more than they get, which shows in that they read again as soon as they may; others take the
 * little that they want and leave the rest. */
#include "relay/common/rate.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/str.h"

#define BURST (10 * FERRY_NS_PER_MS)
#define PATIENCE (50 * FERRY_NS_PER_MS)
#define PROMPT (3 * FERRY_NS_PER_MS)   /* after a wait: it had been held up */
#define ACTIVE (100 * FERRY_NS_PER_MS) /* a move that was held up within this shares the limit */
enum { SMALL = 4096 };

struct relay_rate {
    struct relay_rate *parent; /* NULL: this is the relay's */
    struct relay_rate *next;   /* sibling */
    atomic_uint_fast64_t limit;
    int64_t own_ns, share_ns; /* sent until then; under the relay's lock */
    int64_t until_ns;         /* the last wait that was asked for */
    int64_t held_ns;          /* when it last read at the end of one */
    /* Of the relay only: */
    pthread_mutex_t lock;
    struct relay_rate *children;
};

static struct relay_rate *top(struct relay_rate *r)
{
    return r->parent ? r->parent : r;
}

struct relay_rate *relay_rate_new(struct relay_rate *parent, uint64_t bytes_per_s)
{
    struct relay_rate *r = ferry_xcalloc(1, sizeof(*r));

    atomic_init(&r->limit, bytes_per_s);
    r->parent = parent;
    pthread_mutex_init(&r->lock, NULL);
    if (parent) {
        pthread_mutex_lock(&parent->lock);
        r->next = parent->children;
        parent->children = r;
        pthread_mutex_unlock(&parent->lock);
    }
    return r;
}

void relay_rate_free(struct relay_rate *r)
{
    if (!r) {
        return;
    }
    if (r->parent) {
        pthread_mutex_lock(&r->parent->lock);
        struct relay_rate **at = &r->parent->children;
        while (*at != r) {
            at = &(*at)->next;
        }
        *at = r->next;
        pthread_mutex_unlock(&r->parent->lock);
    }
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void relay_rate_set(struct relay_rate *r, uint64_t bytes_per_s)
{
    struct relay_rate *relay = top(r);

    pthread_mutex_lock(&relay->lock);
    atomic_store(&r->limit, bytes_per_s);
    r->own_ns = 0; /* what was spent was spent under another limit */
    for (struct relay_rate *c = r->children; c; c = c->next) {
        c->share_ns = 0;
    }
    pthread_mutex_unlock(&relay->lock);
}

uint64_t relay_rate_get(const struct relay_rate *r)
{
    return atomic_load(&r->limit);
}

static int64_t cost_ns(size_t n, double bytes_per_s)
{
    return (int64_t)((double)n / bytes_per_s * 1e9);
}

static int64_t advance(int64_t at, int64_t now, int64_t cost)
{
    return (at > now - BURST ? at : now - BURST) + cost;
}

static unsigned count_active(const struct relay_rate *relay, int64_t now)
{
    unsigned n = 0;

    for (const struct relay_rate *c = relay->children; c; c = c->next) {
        n += c->held_ns > 0 && now - c->held_ns < ACTIVE;
    }
    return n > 0 ? n : 1;
}

/* Under the relay's limit alone. */
static int64_t spend_shared(struct relay_rate *relay, struct relay_rate *r, size_t n, int64_t now)
{
    uint64_t limit = atomic_load(&relay->limit);

    if (limit == 0) {
        return 0;
    }
    relay->own_ns = advance(relay->own_ns, now, cost_ns(n, (double)limit));
    r->share_ns = advance(r->share_ns, now, cost_ns(n, (double)limit / count_active(relay, now)));
    if (r->share_ns > now + PATIENCE) {
        r->share_ns = now + PATIENCE;
    }
    if (relay->own_ns <= now) {
        return 0;
    }
    return r->share_ns > relay->own_ns ? r->share_ns : relay->own_ns;
}

int64_t relay_rate_spend(struct relay_rate *r, size_t n, int64_t now)
{
    struct relay_rate *relay = r ? top(r) : NULL;

    if (!r || (atomic_load(&r->limit) == 0 && atomic_load(&relay->limit) == 0)) {
        return 0;
    }
    pthread_mutex_lock(&relay->lock);
    if (r->until_ns > 0 && now - r->until_ns < PROMPT) {
        r->held_ns = now;
    }
    int64_t until = spend_shared(relay, r, n, now);
    uint64_t own = r == relay ? 0 : atomic_load(&r->limit);
    if (own > 0) {
        r->own_ns = advance(r->own_ns, now, cost_ns(n, (double)own));
        until = r->own_ns > until ? r->own_ns : until;
    }
    r->until_ns = until;
    pthread_mutex_unlock(&relay->lock);
    return n <= SMALL || until <= now ? 0 : until;
}
