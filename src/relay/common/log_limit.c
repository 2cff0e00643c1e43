/* Theory of operation. A table of counters, each for a minute that begins with its first line: one
 * for all, one per host, one per host and text. They are found by a hash; when the table is full
 * the counter whose minute began first makes room. A stranger with many addresses can push others'
 * counters out, but not get past the one for all, which has a place of its own. */
#include "relay/common/log_limit.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"

#define SPAN (60 * FERRY_NS_PER_S)
enum { COUNTERS = 256 };

struct counter {
    uint64_t hash; /* 0 = free */
    int64_t since;
    unsigned written, silent;
};

struct relay_log_limit {
    pthread_mutex_t lock;
    struct counter all, counters[COUNTERS];
};

struct relay_log_limit *relay_log_limit_new(void)
{
    struct relay_log_limit *h = ferry_xcalloc(1, sizeof(*h));

    pthread_mutex_init(&h->lock, NULL);
    return h;
}

void relay_log_limit_free(struct relay_log_limit *h)
{
    if (h) {
        pthread_mutex_destroy(&h->lock);
        free(h);
    }
}

static uint64_t hash_of(uint64_t before, const char *text, size_t n)
{
    uint64_t hash = ferry_hash(before, text, n);

    return hash ? hash : 1;
}

static struct counter *find(struct relay_log_limit *h, uint64_t hash, int64_t now)
{
    struct counter *oldest = &h->counters[0];

    for (size_t i = 0; i < COUNTERS; i++) {
        struct counter *c = &h->counters[i];

        if (c->hash == hash) {
            return c;
        }
        if (c->since < oldest->since) {
            oldest = c;
        }
    }
    *oldest = (struct counter){.hash = hash, .since = now};
    return oldest;
}

static bool has_room(struct counter *c, unsigned most, int64_t now)
{
    if (now - c->since >= SPAN) {
        c->since = now;
        c->written = 0;
    }
    return c->written < most;
}

int64_t relay_log_limit_ask(struct relay_log_limit *h, const char *peer, const char *text,
                            int64_t now)
{
    const char *colon = strrchr(peer, ':');
    size_t n = colon ? (size_t)(colon - peer) : strlen(peer);
    uint64_t host_hash = hash_of(ferry_map_seed(), peer, n);
    int64_t silent = -1;

    pthread_mutex_lock(&h->lock);
    struct counter *host = find(h, host_hash, now);
    struct counter *same = find(h, hash_of(host_hash, text, strlen(text)), now);
    /* Each is asked, so that each begins its minute. */
    bool room = has_room(&h->all, LOG_LIMIT_ALL, now);
    room = has_room(host, LOG_LIMIT_HOST, now) && room;
    room = has_room(same, LOG_LIMIT_SAME, now) && room;
    if (room) {
        h->all.written++;
        host->written++;
        same->written++;
        silent = same->silent;
        same->silent = 0;
    } else {
        same->silent++;
    }
    pthread_mutex_unlock(&h->lock);
    return silent;
}
