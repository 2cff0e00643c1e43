/* Threads that take keys from a queue and reconcile them. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "kube/queue.h"

struct kube_workers;

/* What reconcile may ask for besides success. */
struct kube_again {
    bool wanted;
    int64_t after_ns; /* look at the key again then, at the latest */
    int priority;
};

struct kube_workers_config {
    const char *name; /* for logs; must live as long as the workers */
    struct kube_queue *queue;
    unsigned threads; /* 0 = 2 */
    /* 0: done, the key's back-off is forgotten. Negative: logged, retried with back-off; INVALID
     * and DENIED are logged as errors, CONFLICT and RETRY as debug: the next try sees newer state.
     */
    int (*reconcile)(void *ctx, const char *key, struct kube_again *again, struct ferry_error *err);
    void *ctx;
};

int kube_workers_start(const struct kube_workers_config *cfg, struct kube_workers **ret,
                       struct ferry_error *err);
/* Shuts the queue down, waits until running reconciles are finished, frees the workers (not the
 * queue); takes NULL. */
void kube_workers_stop(struct kube_workers *w);
