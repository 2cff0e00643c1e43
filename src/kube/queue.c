/* Theory of operation.
 *
 * Every key that the queue remembers is one `struct item` in a tree by key. An item is in up to two
 * heaps: `ready` (to be handed out, by priority, then order of arrival) and `alarms` (to become
 * ready at a time). `busy` is set while a worker has it; what arrives in that time sets `again`
 * and goes to `ready` in done(). An item is forgotten when nothing of this is set and it has no
 * back-off history. One lock guards all; waiters sleep on one condition until the first alarm. */
#include "kube/queue.h"

#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/str.h"

#define BACKOFF_MIN_NS (20 * FERRY_NS_PER_MS)
#define BACKOFF_MAX_NS (30 * FERRY_NS_PER_S)

enum { NOWHERE = -1 };

enum heap_id { READY, ALARMS, HEAPS };

struct item {
    char *key;
    int priority;       /* in ready */
    int alarm_priority; /* what the alarm asks for */
    uint64_t order;     /* of arrival in ready */
    int64_t alarm_ns;
    bool busy, again;
    int64_t since_ns; /* ready, or busy */
    unsigned failures;
    ptrdiff_t at[HEAPS]; /* place in each heap, or NOWHERE */
};

struct heap {
    struct item **items;
    size_t n, cap;
};

struct kube_queue {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct kube_queue_config cfg;
    void *by_key; /* tsearch tree of struct item */
    struct heap heaps[HEAPS];
    uint64_t next_order;
    bool down;
    /* For the figures; those being worked on are in a list. */
    struct kube_queue_figures figures;
    struct item **busy;
    size_t n_busy, cap_busy;
};

/* ---- heaps -----------------------------------------------------------------------------------
 */

static bool before(enum heap_id id, const struct item *a, const struct item *b)
{
    if (id == ALARMS) {
        return a->alarm_ns < b->alarm_ns;
    }
    return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

static void place(struct kube_queue *q, enum heap_id id, size_t at, struct item *it)
{
    q->heaps[id].items[at] = it;
    it->at[id] = (ptrdiff_t)at;
}

static void sift(struct kube_queue *q, enum heap_id id, size_t at)
{
    struct heap *h = &q->heaps[id];
    struct item *it = h->items[at];

    while (at > 0 && before(id, it, h->items[(at - 1) / 2])) {
        place(q, id, at, h->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = at * 2 + 1;

        if (child + 1 < h->n && before(id, h->items[child + 1], h->items[child])) {
            child++;
        }
        if (child >= h->n || !before(id, h->items[child], it)) {
            break;
        }
        place(q, id, at, h->items[child]);
        at = child;
    }
    place(q, id, at, it);
}

static void heap_push(struct kube_queue *q, enum heap_id id, struct item *it)
{
    struct heap *h = &q->heaps[id];

    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 16;
        h->items = ferry_xrealloc(h->items, h->cap, sizeof(struct item *));
    }
    place(q, id, h->n++, it);
    sift(q, id, h->n - 1);
}

static void heap_remove(struct kube_queue *q, enum heap_id id, struct item *it)
{
    struct heap *h = &q->heaps[id];
    size_t at = (size_t)it->at[id];
    struct item *last = h->items[--h->n];

    it->at[id] = NOWHERE;
    if (last != it) {
        place(q, id, at, last);
        sift(q, id, at);
    }
}

/* ---- items -----------------------------------------------------------------------------------
 */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->key, ((const struct item *)b)->key);
}

static struct item *find(struct kube_queue *q, const char *key)
{
    struct item probe = {.key = (char *)(uintptr_t)key};
    struct item **slot = tfind(&probe, &q->by_key, by_key);

    return slot ? *slot : NULL;
}

static struct item *find_or_add(struct kube_queue *q, const char *key)
{
    struct item *it = find(q, key);

    if (!it) {
        it = ferry_xcalloc(1, sizeof(*it));
        it->key = ferry_strdup(key);
        it->at[READY] = it->at[ALARMS] = NOWHERE;
        if (!tsearch(it, &q->by_key, by_key)) {
            abort(); /* out of memory, as everywhere */
        }
    }
    return it;
}

static void item_free(void *p)
{
    struct item *it = p;

    free(it->key);
    free(it);
}

static void drop_if_idle(struct kube_queue *q, struct item *it)
{
    if (!it->busy && !it->failures && it->at[READY] == NOWHERE && it->at[ALARMS] == NOWHERE) {
        tdelete(it, &q->by_key, by_key);
        item_free(it);
    }
}

/* ---- figures ---------------------------------------------------------------------------------
 */

double kube_queue_bound_s(size_t bucket)
{
    double bound = 1e-8;

    while (bucket-- > 0) {
        bound *= 10;
    }
    return bound;
}

static void count_time(struct kube_queue_times *t, int64_t ns)
{
    int64_t bound_ns = 10;

    for (size_t i = 0; i < KUBE_QUEUE_BUCKETS; i++, bound_ns *= 10) {
        t->buckets[i] += ns <= bound_ns;
    }
    t->count++;
    t->sum_s += (double)ns / 1e9;
}

static void note_begin(struct kube_queue *q, struct item *it, int64_t now_ns)
{
    count_time(&q->figures.waited, now_ns - it->since_ns);
    it->since_ns = now_ns;
    if (q->n_busy == q->cap_busy) {
        q->cap_busy = q->cap_busy ? 2 * q->cap_busy : 8;
        q->busy = ferry_xrealloc(q->busy, q->cap_busy, sizeof(struct item *));
    }
    q->busy[q->n_busy++] = it;
}

static void note_end(struct kube_queue *q, const struct item *it)
{
    count_time(&q->figures.worked, q->cfg.now_ns() - it->since_ns);
    for (size_t i = 0; i < q->n_busy; i++) {
        if (q->busy[i] == it) {
            q->busy[i] = q->busy[--q->n_busy];
            return;
        }
    }
}

void kube_queue_figures(struct kube_queue *q, struct kube_queue_figures *ret)
{
    pthread_mutex_lock(&q->lock);
    int64_t now_ns = q->cfg.now_ns();

    *ret = q->figures;
    ret->depth = q->heaps[READY].n;
    for (size_t i = 0; i < q->n_busy; i++) {
        double s = (double)(now_ns - q->busy[i]->since_ns) / 1e9;

        ret->unfinished_s += s;
        ret->longest_s = s > ret->longest_s ? s : ret->longest_s;
    }
    pthread_mutex_unlock(&q->lock);
}

static void make_ready(struct kube_queue *q, struct item *it, int priority)
{
    if (it->busy) {
        q->figures.adds += !it->again;
        it->priority = it->again && it->priority > priority ? it->priority : priority;
        it->again = true;
        return;
    }
    if (it->at[READY] != NOWHERE) {
        if (priority > it->priority) {
            it->priority = priority;
            sift(q, READY, (size_t)it->at[READY]);
        }
        return;
    }
    q->figures.adds += !it->again;
    it->again = false;
    it->priority = priority;
    it->since_ns = q->cfg.now_ns();
    it->order = q->next_order++;
    heap_push(q, READY, it);
    pthread_cond_signal(&q->changed);
}

static void set_alarm(struct kube_queue *q, struct item *it, int priority, int64_t at_ns)
{
    if (it->at[ALARMS] == NOWHERE) {
        it->alarm_ns = at_ns;
        it->alarm_priority = priority;
        heap_push(q, ALARMS, it);
    } else {
        if (priority > it->alarm_priority) {
            it->alarm_priority = priority;
        }
        if (at_ns < it->alarm_ns) {
            it->alarm_ns = at_ns;
            sift(q, ALARMS, (size_t)it->at[ALARMS]);
        }
    }
    /* Who sleeps until the first alarm has to hear of an earlier one. All of them: whoever is woken
     * first may be busy with another key when it is due. */
    if (it->at[ALARMS] == 0) {
        pthread_cond_broadcast(&q->changed);
    }
}

static void ring_alarms(struct kube_queue *q, int64_t now_ns)
{
    struct heap *h = &q->heaps[ALARMS];

    while (h->n > 0 && h->items[0]->alarm_ns <= now_ns) {
        struct item *it = h->items[0];

        heap_remove(q, ALARMS, it);
        make_ready(q, it, it->alarm_priority);
    }
}

/* ---- the queue -------------------------------------------------------------------------------
 */

struct kube_queue *kube_queue_new(const struct kube_queue_config *cfg)
{
    struct kube_queue *q = ferry_xcalloc(1, sizeof(*q));

    if (cfg) {
        q->cfg = *cfg;
    }
    if (!q->cfg.now_ns) {
        q->cfg.now_ns = ferry_now_ns;
    }
    if (!q->cfg.backoff_min_ns) {
        q->cfg.backoff_min_ns = BACKOFF_MIN_NS;
    }
    if (!q->cfg.backoff_max_ns) {
        q->cfg.backoff_max_ns = BACKOFF_MAX_NS;
    }
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    return q;
}

void kube_queue_free(struct kube_queue *q)
{
    if (!q) {
        return;
    }
    tdestroy(q->by_key, item_free);
    free(q->heaps[READY].items);
    free(q->heaps[ALARMS].items);
    free(q->busy);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void kube_queue_add(struct kube_queue *q, const char *key, int priority)
{
    pthread_mutex_lock(&q->lock);
    make_ready(q, find_or_add(q, key), priority);
    pthread_mutex_unlock(&q->lock);
}

void kube_queue_add_after(struct kube_queue *q, const char *key, int priority, int64_t delay_ns)
{
    pthread_mutex_lock(&q->lock);
    if (delay_ns <= 0) {
        make_ready(q, find_or_add(q, key), priority);
    } else {
        set_alarm(q, find_or_add(q, key), priority, q->cfg.now_ns() + delay_ns);
    }
    pthread_mutex_unlock(&q->lock);
}

void kube_queue_retry(struct kube_queue *q, const char *key, int priority)
{
    pthread_mutex_lock(&q->lock);
    struct item *it = find_or_add(q, key);
    int64_t delay = q->cfg.backoff_min_ns;

    for (unsigned i = 0; i < it->failures && delay < q->cfg.backoff_max_ns; i++) {
        delay *= 2;
    }
    it->failures++;
    q->figures.retries++;
    set_alarm(q, it, priority,
              q->cfg.now_ns() + (delay < q->cfg.backoff_max_ns ? delay : q->cfg.backoff_max_ns));
    pthread_mutex_unlock(&q->lock);
}

void kube_queue_forget(struct kube_queue *q, const char *key)
{
    pthread_mutex_lock(&q->lock);
    struct item *it = find(q, key);

    if (it) {
        it->failures = 0;
        drop_if_idle(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

/* Sleeps until something changes, the first alarm, or the deadline. */
static void wait_locked(struct kube_queue *q, int64_t deadline_ns)
{
    const struct heap *alarms = &q->heaps[ALARMS];
    int64_t until = deadline_ns;

    if (alarms->n > 0 && alarms->items[0]->alarm_ns < until) {
        until = alarms->items[0]->alarm_ns;
    }
    ferry_cond_wait(&q->changed, &q->lock, until);
}

char *kube_queue_get(struct kube_queue *q, int64_t deadline_ns, int *ret_priority)
{
    char *key = NULL;

    pthread_mutex_lock(&q->lock);
    while (!q->down) {
        int64_t now = q->cfg.now_ns();

        ring_alarms(q, now);
        if (q->heaps[READY].n > 0) {
            struct item *it = q->heaps[READY].items[0];

            heap_remove(q, READY, it);
            it->busy = true;
            note_begin(q, it, now);
            key = ferry_strdup(it->key);
            if (ret_priority) {
                *ret_priority = it->priority;
            }
            break;
        }
        if (deadline_ns <= now) {
            break;
        }
        wait_locked(q, deadline_ns);
    }
    pthread_mutex_unlock(&q->lock);
    return key;
}

void kube_queue_done(struct kube_queue *q, const char *key)
{
    pthread_mutex_lock(&q->lock);
    struct item *it = find(q, key);

    if (it && it->busy) {
        it->busy = false;
        note_end(q, it);
        if (it->again) { /* counted when it was added */
            make_ready(q, it, it->priority);
        }
        drop_if_idle(q, it);
    }
    pthread_mutex_unlock(&q->lock);
}

void kube_queue_shutdown(struct kube_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->down = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

size_t kube_queue_ready(struct kube_queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->heaps[READY].n;
    pthread_mutex_unlock(&q->lock);
    return n;
}
