#include "control/loops/queue_metrics.h"

#include "base/count.h"
#include "base/prom.h"

#define PREFIX "kubevirt_workqueue_"

static double depth(const struct kube_queue_figures *f)
{
    return (double)f->depth;
}

static double adds(const struct kube_queue_figures *f)
{
    return (double)f->adds;
}

static double retries(const struct kube_queue_figures *f)
{
    return (double)f->retries;
}

static double unfinished(const struct kube_queue_figures *f)
{
    return f->unfinished_s;
}

static double longest(const struct kube_queue_figures *f)
{
    return f->longest_s;
}

static const struct {
    const char *name, *type, *help;
    double (*value)(const struct kube_queue_figures *f);
} plain[] = {
    {PREFIX "depth", "gauge", "Keys that wait for a worker.", depth},
    {PREFIX "adds_total", "counter", "Keys that were added.", adds},
    {PREFIX "retries_total", "counter", "Keys that come back after a failure.", retries},
    {PREFIX "unfinished_work_seconds", "gauge", "How long those in work take so far, in sum.",
     unfinished},
    {PREFIX "longest_running_processor_seconds", "gauge",
     "How long the longest in work takes so far.", longest},
};

static void write_times(const char *metric, const char *help, const struct queue_metrics *queues,
                        size_t n, bool worked, struct ferry_buf *out)
{
    double bounds[KUBE_QUEUE_BUCKETS];

    for (size_t k = 0; k < KUBE_QUEUE_BUCKETS; k++) {
        bounds[k] = kube_queue_bound_s(k);
    }
    ferry_prom_head(out, metric, "histogram", help);
    for (size_t i = 0; i < n; i++) {
        const struct kube_queue_times *t =
            worked ? &queues[i].figures.worked : &queues[i].figures.waited;

        ferry_prom_histogram(out, metric, FERRY_LABELS({"name", queues[i].name}),
                             &(struct ferry_prom_histogram){bounds, t->buckets, KUBE_QUEUE_BUCKETS,
                                                            t->count, t->sum_s});
    }
}

void queue_metrics_write(const struct queue_metrics *queues, size_t n, struct ferry_buf *out)
{
    for (size_t k = 0; k < FERRY_COUNT(plain); k++) {
        ferry_prom_head(out, plain[k].name, plain[k].type, plain[k].help);
        for (size_t i = 0; i < n; i++) {
            ferry_prom_sample(out, plain[k].name, FERRY_LABELS({"name", queues[i].name}),
                              plain[k].value(&queues[i].figures));
        }
    }
    write_times(PREFIX "queue_duration_seconds", "How long keys waited for a worker.", queues, n,
                false, out);
    write_times(PREFIX "work_duration_seconds", "How long keys were worked on.", queues, n, true,
                out);
}
