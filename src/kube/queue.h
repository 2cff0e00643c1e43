/* Work queue of keys, as controllers need it.
 *
 * A key waits once however often it is added, keeps the highest priority it was added with, and is
 * never with two workers at a time: added while it is worked on, it comes back when that is done.
 * Higher priority first, then first come, first served. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_queue;

/* KubeVirt's values. */
enum {
    KUBE_PRIORITY_NONE = 0,
    KUBE_PRIORITY_MAINTENANCE = 20,
    KUBE_PRIORITY_USER = 50,
    KUBE_PRIORITY_CRITICAL = 100,
    KUBE_PRIORITY_ACTIVE = 1000,
};

struct kube_queue_config {
    int64_t backoff_min_ns, backoff_max_ns; /* 0 = 20 ms and 30 s */
    int64_t (*now_ns)(void);                /* NULL = the monotonic clock */
};

struct kube_queue *kube_queue_new(const struct kube_queue_config *cfg); /* NULL = defaults */
/* No thread may be inside or come after. */
void kube_queue_free(struct kube_queue *q);

void kube_queue_add(struct kube_queue *q, const char *key, int priority);
/* A key has one alarm: the earliest asked for. It does not hold back an immediate add. */
void kube_queue_add_after(struct kube_queue *q, const char *key, int priority, int64_t delay_ns);
/* Comes back after the key's back-off, which doubles with each retry until kube_queue_forget(). */
void kube_queue_retry(struct kube_queue *q, const char *key, int priority);
void kube_queue_forget(struct kube_queue *q, const char *key);

/* Next key, owned by the caller, who must call kube_queue_done() with it; NULL at `deadline_ns`
 * (of the queue's clock; 0 = do not wait, INT64_MAX = for ever) or after shutdown. */
char *kube_queue_get(struct kube_queue *q, int64_t deadline_ns, int *ret_priority);
void kube_queue_done(struct kube_queue *q, const char *key);

/* Wakes all who wait in get; nothing comes out any more. */
void kube_queue_shutdown(struct kube_queue *q);
/* Keys that are ready to be worked on, for metrics and tests. */
size_t kube_queue_ready(struct kube_queue *q);

/* What client-go tells of its queues. Bounds of the buckets: 10 ns, times ten each, to 10 s. */
enum { KUBE_QUEUE_BUCKETS = 10 };
struct kube_queue_times {
    unsigned long long buckets[KUBE_QUEUE_BUCKETS], count; /* each bucket includes those before */
    double sum_s;
};
struct kube_queue_figures {
    size_t depth;
    unsigned long long adds, retries;
    struct kube_queue_times waited, worked;
    double unfinished_s, longest_s; /* of those being worked on: sum, and the longest */
};
double kube_queue_bound_s(size_t bucket);
void kube_queue_figures(struct kube_queue *q, struct kube_queue_figures *ret);
