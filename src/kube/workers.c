#include "kube/workers.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum { THREADS = 2, THREADS_MAX = 64 };

struct kube_workers {
    struct kube_workers_config cfg;
    pthread_t *threads;
    unsigned n;
};

static void log_failure(const struct kube_workers *w, const char *key,
                        const struct ferry_error *err)
{
    enum ferry_log_level level = FERRY_LOG_ERROR;

    if (err->cls == FERRY_CONFLICT || err->cls == FERRY_RETRY || err->cls == FERRY_CANCELLED) {
        level = FERRY_LOG_DEBUG;
    }
    FERRY_LOG(level, "reconcile failed, will be retried", F_STR("queue", w->cfg.name),
              F_STR("key", key), F_STR("class", ferry_class_name(err->cls)), F_ERR(err));
}

static void work_on(struct kube_workers *w, const char *key, int priority)
{
    struct kube_again again = {0};
    struct ferry_error err = {0};
    int rc = w->cfg.reconcile(w->cfg.ctx, key, &again, &err);

    if (rc < 0) {
        log_failure(w, key, &err);
        kube_queue_retry(w->cfg.queue, key, priority);
    } else {
        kube_queue_forget(w->cfg.queue, key);
        if (again.wanted) {
            kube_queue_add_after(w->cfg.queue, key, again.priority, again.after_ns);
        }
    }
}

static void *worker(void *arg)
{
    struct kube_workers *w = arg;
    int priority = 0;
    char *key;

    while ((key = kube_queue_get(w->cfg.queue, INT64_MAX, &priority))) {
        work_on(w, key, priority);
        kube_queue_done(w->cfg.queue, key);
        free(key);
    }
    return NULL;
}

int kube_workers_start(const struct kube_workers_config *cfg, struct kube_workers **ret,
                       struct ferry_error *err)
{
    unsigned wanted = cfg->threads ? cfg->threads : THREADS;
    struct kube_workers *w = ferry_xcalloc(1, sizeof(*w));

    w->cfg = *cfg;
    wanted = wanted < THREADS_MAX ? wanted : THREADS_MAX;
    w->threads = ferry_xcalloc(wanted, sizeof(*w->threads));
    for (; w->n < wanted; w->n++) {
        int e = pthread_create(&w->threads[w->n], NULL, worker, w);

        if (e != 0) {
            kube_workers_stop(w);
            return ferry_fail_errno(err, e, "starting a worker of queue %s", cfg->name);
        }
    }
    *ret = w;
    return 0;
}

void kube_workers_stop(struct kube_workers *w)
{
    if (!w) {
        return;
    }
    kube_queue_shutdown(w->cfg.queue);
    for (unsigned i = 0; i < w->n; i++) {
        pthread_join(w->threads[i], NULL);
    }
    free(w->threads);
    free(w);
}
