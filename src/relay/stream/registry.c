#include "relay/stream/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

enum { TOMBSTONES_MAX = 1024 };

struct relay_live {
    struct relay_registry *registry;
    struct relay_live *next;
    uint8_t id[FRAME_ID];
    char move[FRAME_MOVE_MAX + 1];
    uint32_t channel;
    uint64_t epoch;
    int wake_fd;
    bool arrived;
    struct relay_arrival arrival;
};

struct relay_registry {
    pthread_mutex_t lock; /* over all, and over the lives */
    struct relay_live *lives;
    struct relay_state_tomb *tombs; /* the oldest first */
    size_t n_tombs;
};

struct relay_registry *relay_registry_new(void)
{
    struct relay_registry *r = ferry_xcalloc(1, sizeof(*r));

    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void relay_registry_free(struct relay_registry *r)
{
    if (r) {
        pthread_mutex_destroy(&r->lock);
        free(r->tombs);
        free(r);
    }
}

/* ---- looking up -------------------------------------------------------------------------------
 */

static struct relay_live *find_live(struct relay_registry *r, const uint8_t id[FRAME_ID])
{
    struct relay_live *l = r->lives;

    while (l && memcmp(l->id, id, FRAME_ID) != 0) {
        l = l->next;
    }
    return l;
}

static const struct hello_tombstone *find_tomb(const struct relay_registry *r,
                                               const uint8_t id[FRAME_ID])
{
    for (size_t i = 0; i < r->n_tombs; i++) {
        if (memcmp(r->tombs[i].stone.id, id, FRAME_ID) == 0) {
            return &r->tombs[i].stone;
        }
    }
    return NULL;
}

static void forget_old(struct relay_registry *r, int64_t now)
{
    size_t keep = 0;

    for (size_t i = 0; i < r->n_tombs; i++) {
        if (now < r->tombs[i].until_ns) {
            r->tombs[keep++] = r->tombs[i];
        }
    }
    r->n_tombs = keep;
}

static void bury(struct relay_registry *r, const struct hello_tombstone *t, int64_t until_ns)
{
    forget_old(r, ferry_now_ns());
    if (r->n_tombs == TOMBSTONES_MAX) {
        memmove(r->tombs, r->tombs + 1, (--r->n_tombs) * sizeof(*r->tombs));
    }
    r->tombs = ferry_xrealloc(r->tombs, r->n_tombs + 1, sizeof(*r->tombs));
    r->tombs[r->n_tombs++] = (struct relay_state_tomb){.stone = *t, .until_ns = until_ns};
}

/* ---- greeting ---------------------------------------------------------------------------------
 */

static struct relay_live *add_live(struct relay_registry *r, const struct hello *h)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0) {
        return NULL;
    }
    struct relay_live *l = ferry_xcalloc(1, sizeof(*l));
    l->registry = r;
    l->wake_fd = fd;
    memcpy(l->id, h->id, FRAME_ID);
    memcpy(l->move, h->move, sizeof(l->move));
    l->channel = h->channel;
    l->epoch = h->epoch;
    l->next = r->lives;
    r->lives = l;
    return l;
}

/* The newest epoch wins. Returns the one that lost, in `*a`, or false when none did. */
static bool hand_over(struct relay_live *l, struct relay_arrival *a)
{
    struct relay_arrival older = l->arrival;
    bool had = l->arrived;

    if (had && older.hello.epoch >= a->hello.epoch) {
        return true;
    }
    l->arrival = *a;
    l->arrived = true;
    eventfd_write(l->wake_fd, 1);
    *a = older;
    return had;
}

static void answer_too_late(struct relay_arrival *a, enum frame_refusal code, const char *why)
{
    struct hello_refusal refusal;
    uint8_t answer[HELLO_ANSWER_MAX];

    hello_refuse(&refusal, code, "%s", why);
    relay_arrival_answer(a, answer, hello_put_refused(answer, &refusal));
}

enum hello_verdict relay_registry_greet(struct relay_registry *r, struct relay_arrival *arrival,
                                        struct hello_facts *facts, const uint8_t instance[FRAME_ID],
                                        struct relay_live **ret_live,
                                        struct hello_refusal *ret_refusal,
                                        uint8_t answer[HELLO_ANSWER_MAX], size_t *ret_length)
{
    const struct hello *h = &arrival->hello;
    bool lost = false;

    pthread_mutex_lock(&r->lock);
    forget_old(r, ferry_now_ns());
    struct relay_live *l = find_live(r, h->id);
    facts->tombstone = find_tomb(r, h->id);
    facts->known = l ? HELLO_KNOWN_LIVE : facts->tombstone ? HELLO_KNOWN_GONE : HELLO_KNOWN_NOT;
    if (l) {
        facts->live_move = l->move;
        facts->live_channel = l->channel;
        facts->live_epoch = l->epoch;
        facts->live_same_peer = facts->peer_is_source; /* a move has one source */
    }
    enum hello_verdict verdict = hello_decide(h, facts, ret_refusal);
    if (verdict == HELLO_START && !(*ret_live = add_live(r, h))) {
        hello_refuse(ret_refusal, FRAME_REFUSED_BUSY, "no descriptor left");
        verdict = HELLO_REFUSE;
    }
    if (verdict == HELLO_ATTACH && l) { /* attached to nothing else */
        lost = hand_over(l, arrival);
    } else if (verdict == HELLO_REFUSE) {
        *ret_length = hello_put_refused(answer, ret_refusal);
    } else if (verdict == HELLO_FINISHED) {
        *ret_length = hello_put_finished(answer, facts->tombstone, instance);
    }
    pthread_mutex_unlock(&r->lock);
    if (lost) {
        answer_too_late(arrival, FRAME_REFUSED_STALE, "a newer connection came first");
    }
    return verdict;
}

/* ---- a stream's side --------------------------------------------------------------------------
 */

int relay_live_fd(const struct relay_live *l)
{
    return l->wake_fd;
}

bool relay_live_take(struct relay_live *l, struct relay_arrival *ret)
{
    eventfd_t ignored;

    pthread_mutex_lock(&l->registry->lock);
    bool arrived = l->arrived;
    if (arrived) {
        *ret = l->arrival;
    }
    l->arrived = false;
    (void)eventfd_read(l->wake_fd, &ignored);
    pthread_mutex_unlock(&l->registry->lock);
    return arrived;
}

void relay_live_attached(struct relay_live *l, uint64_t epoch)
{
    pthread_mutex_lock(&l->registry->lock);
    l->epoch = epoch;
    pthread_mutex_unlock(&l->registry->lock);
}

static void remove_live(struct relay_registry *r, const struct relay_live *l)
{
    struct relay_live **at = &r->lives;

    while (*at != l) {
        at = &(*at)->next;
    }
    *at = l->next;
}

void relay_registry_leave(struct relay_registry *r, struct relay_live *l,
                          const struct hello_tombstone *t, int64_t until_ns)
{
    pthread_mutex_lock(&r->lock);
    remove_live(r, l);
    bury(r, t, until_ns);
    pthread_mutex_unlock(&r->lock);
    if (l->arrived) {
        answer_too_late(&l->arrival, FRAME_REFUSED_BUSY, "stream is just ending");
    }
    close(l->wake_fd);
    free(l);
}

void relay_registry_abandon(struct relay_registry *r, struct relay_live *l)
{
    pthread_mutex_lock(&r->lock);
    remove_live(r, l);
    pthread_mutex_unlock(&r->lock);
    if (l->arrived) {
        tls_conn_free(l->arrival.tls);
        close(l->arrival.fd);
    }
    close(l->wake_fd);
    free(l);
}

/* ---- to and from another process --------------------------------------------------------------
 */

struct relay_live *relay_registry_restore(struct relay_registry *r, const uint8_t id[FRAME_ID],
                                          const char *move, uint32_t channel, uint64_t epoch)
{
    struct hello h = {.channel = channel, .epoch = epoch};

    memcpy(h.id, id, FRAME_ID);
    snprintf(h.move, sizeof(h.move), "%s", move);
    pthread_mutex_lock(&r->lock);
    struct relay_live *l = add_live(r, &h);
    pthread_mutex_unlock(&r->lock);
    return l;
}

size_t relay_registry_tombs(struct relay_registry *r, struct relay_state_tomb **ret)
{
    pthread_mutex_lock(&r->lock);
    forget_old(r, ferry_now_ns());
    size_t n = r->n_tombs;
    *ret = ferry_xcalloc(n + 1, sizeof(**ret));
    if (n > 0) {
        memcpy(*ret, r->tombs, n * sizeof(**ret));
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

void relay_registry_bury(struct relay_registry *r, const struct relay_state_tomb *t)
{
    pthread_mutex_lock(&r->lock);
    bury(r, &t->stone, t->until_ns);
    pthread_mutex_unlock(&r->lock);
}

void relay_arrival_answer(struct relay_arrival *a, const uint8_t *answer, size_t n)
{
    size_t sent = 0;

    if (tls_conn_write(a->tls, answer, n, &sent, NULL) == TLS_OK &&
        tls_conn_close_send(a->tls, NULL) == TLS_OK) {
        (void)shutdown(a->fd, SHUT_WR);
    }
    tls_conn_free(a->tls);
    close(a->fd);
}
