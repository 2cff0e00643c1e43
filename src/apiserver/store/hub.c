/* Theory of operation. Events stand in a ring, oldest first, versions growing. `floor` is the
 * version of the newest event that was dropped (at first: of the store at start), so a watcher may
 * go on from any version between `floor` and `newest`. A watcher only keeps a version; it holds
 * nothing here, so there is nothing to clean up when it goes away. */
#include "apiserver/store/hub.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/str.h"

struct hub {
    pthread_mutex_t lock; /* all below */
    pthread_cond_t grown;
    struct hub_event *ring;
    size_t first, n, max_events;
    size_t bytes, max_bytes;
    uint64_t floor, newest;
};

void hub_event_done(struct hub_event *e)
{
    entry_unref(e->now);
    entry_unref(e->before);
    *e = (struct hub_event){0};
}

void hub_batch_done(struct hub_batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        hub_event_done(&b->events[i]);
    }
    b->n = 0;
}

struct hub *hub_new(uint64_t version, size_t max_events, size_t max_bytes)
{
    struct hub *h = ferry_xcalloc(1, sizeof(*h));

    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->grown, NULL);
    h->ring = ferry_xcalloc(max_events, sizeof(*h->ring));
    h->max_events = max_events;
    h->max_bytes = max_bytes;
    h->floor = h->newest = version;
    return h;
}

static struct hub_event *event_at(struct hub *h, size_t i)
{
    return &h->ring[(h->first + i) % h->max_events];
}

static size_t event_bytes(const struct hub_event *e)
{
    return e->now->json_len + (e->before ? e->before->json_len : 0);
}

static void drop_oldest(struct hub *h)
{
    struct hub_event *e = event_at(h, 0);

    h->floor = e->now->version;
    h->bytes -= event_bytes(e);
    hub_event_done(e);
    h->first = (h->first + 1) % h->max_events;
    h->n--;
}

void hub_free(struct hub *h)
{
    if (!h) {
        return;
    }
    while (h->n) {
        drop_oldest(h);
    }
    free(h->ring);
    pthread_cond_destroy(&h->grown);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

void hub_publish(struct hub *h, enum hub_type type, struct entry *now, struct entry *before)
{
    pthread_mutex_lock(&h->lock);
    if (h->n == h->max_events) {
        drop_oldest(h);
    }
    struct hub_event *e = event_at(h, h->n);
    *e = (struct hub_event){
        .type = type, .now = entry_ref(now), .before = before ? entry_ref(before) : NULL};
    h->n++;
    h->bytes += event_bytes(e);
    h->newest = now->version;
    while (h->bytes > h->max_bytes && h->n > 1) {
        drop_oldest(h);
    }
    pthread_cond_broadcast(&h->grown);
    pthread_mutex_unlock(&h->lock);
}

/* Index of the first event after `version`. */
static size_t first_after(struct hub *h, uint64_t version)
{
    size_t low = 0, high = h->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (event_at(h, middle)->now->version > version) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void collect(struct hub *h, const struct api_resource *resource, uint64_t after,
                    struct hub_batch *ret)
{
    for (size_t i = first_after(h, after); i < h->n && ret->n < HUB_BATCH; i++) {
        const struct hub_event *e = event_at(h, i);

        ret->version = e->now->version;
        if (resource && e->now->resource != resource) {
            continue;
        }
        ret->events[ret->n++] =
            (struct hub_event){.type = e->type,
                               .now = entry_ref(e->now),
                               .before = e->before ? entry_ref(e->before) : NULL};
    }
}

int hub_wait(struct hub *h, const struct api_resource *resource, uint64_t after, int timeout_ms,
             struct hub_batch *ret)
{
    int64_t deadline = ferry_now_ns() + timeout_ms * FERRY_NS_PER_MS;
    int rc = 0;

    *ret = (struct hub_batch){.version = after};
    pthread_mutex_lock(&h->lock);
    for (;;) {
        if (ret->version < h->floor || ret->version > h->newest) {
            rc = -1;
            break;
        }
        collect(h, resource, ret->version, ret);
        if (ret->n || timeout_ms == 0 || !ferry_cond_wait(&h->grown, &h->lock, deadline)) {
            break;
        }
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}
