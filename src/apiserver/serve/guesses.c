/* Theory of operation. A table of counters, each for a minute that begins with its first guess.
 * When it is full the one whose minute began first makes room: who has that many addresses can have
 * more guesses, of which there would have to be 2^160. */
#include "apiserver/serve/guesses.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/doors_decide.h"

#define SPAN (60 * FERRY_NS_PER_S)
enum { COUNTERS = 256 };

struct counter {
    struct doors_address address;
    int64_t since;
    unsigned wrong; /* 0 = free */
};

struct guesses {
    atomic_int_fast64_t shut_until; /* nobody is shut out after that */
    pthread_mutex_t lock;           /* over the counters */
    struct counter counters[COUNTERS];
};

struct guesses *guesses_new(void)
{
    struct guesses *g = ferry_xcalloc(1, sizeof(*g));

    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void guesses_free(struct guesses *g)
{
    if (g) {
        pthread_mutex_destroy(&g->lock);
        free(g);
    }
}

static struct doors_address address_of(const char *text)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
        return doors_address_of((const struct sockaddr *)&six);
    }
    return inet_pton(AF_INET, text, &four.sin_addr) == 1
               ? doors_address_of((const struct sockaddr *)&four)
               : doors_address_of(NULL);
}

/* Under the lock. The counter of an address, or NULL; `*oldest` is the one to use instead. */
static struct counter *find(struct guesses *g, const struct doors_address *address,
                            struct counter **oldest)
{
    *oldest = &g->counters[0];
    for (size_t i = 0; i < COUNTERS; i++) {
        struct counter *c = &g->counters[i];

        if (c->wrong > 0 && doors_same_address(&c->address, address)) {
            return c;
        }
        if (c->wrong == 0 || (*oldest)->since > c->since) {
            *oldest = (*oldest)->wrong == 0 ? *oldest : c;
        }
    }
    return NULL;
}

int guesses_wait_s(struct guesses *g, const char *address, int64_t now_ns)
{
    struct doors_address at = address_of(address);
    struct counter *unused;
    int wait_s = 0;

    if (now_ns >= atomic_load_explicit(&g->shut_until, memory_order_relaxed)) {
        return 0;
    }
    pthread_mutex_lock(&g->lock);
    const struct counter *c = find(g, &at, &unused);
    if (c && c->wrong >= GUESSES_MOST && now_ns < c->since + SPAN) {
        wait_s = (int)((c->since + SPAN - now_ns) / FERRY_NS_PER_S) + 1;
    }
    pthread_mutex_unlock(&g->lock);
    return wait_s;
}

void guesses_note(struct guesses *g, const char *address, int64_t now_ns)
{
    struct doors_address at = address_of(address);
    struct counter *oldest;

    pthread_mutex_lock(&g->lock);
    struct counter *c = find(g, &at, &oldest);
    if (!c || now_ns - c->since >= SPAN) {
        c = c ? c : oldest;
        *c = (struct counter){.address = at, .since = now_ns};
    }
    c->wrong++;
    if (c->wrong >= GUESSES_MOST) {
        atomic_store_explicit(&g->shut_until, now_ns + SPAN, memory_order_relaxed);
    }
    pthread_mutex_unlock(&g->lock);
}
