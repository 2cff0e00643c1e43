#include "control/loops/queue_metrics.h"

#include "base/count.h"

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
    {"depth", "gauge", "Keys that wait for a worker.", depth},
    {"adds_total", "counter", "Keys that were added.", adds},
    {"retries_total", "counter", "Keys that come back after a failure.", retries},
    {"unfinished_work_seconds", "gauge", "How long those in work take so far, in sum.", unfinished},
    {"longest_running_processor_seconds", "gauge", "How long the longest in work takes so far.",
     longest},
};

static void write_times(const char *metric, const char *help, const struct queue_metrics *queues,
                        size_t n, bool worked, struct ferry_buf *out)
{
    ferry_buf_printf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s histogram\n", metric, help,
                     metric);
    for (size_t i = 0; i < n; i++) {
        const struct kube_queue_times *t =
            worked ? &queues[i].figures.worked : &queues[i].figures.waited;
        const char *name = queues[i].name;

        for (size_t k = 0; k < KUBE_QUEUE_BUCKETS; k++) {
            ferry_buf_printf(out, PREFIX "%s_bucket{name=\"%s\",le=\"%g\"} %llu\n", metric, name,
                             kube_queue_bound_s(k), t->buckets[k]);
        }
        ferry_buf_printf(out,
                         PREFIX "%s_bucket{name=\"%s\",le=\"+Inf\"} %llu\n" PREFIX
                                "%s_sum{name=\"%s\"} %g\n" PREFIX "%s_count{name=\"%s\"} %llu\n",
                         metric, name, t->count, metric, name, t->sum_s, metric, name, t->count);
    }
}

void queue_metrics_write(const struct queue_metrics *queues, size_t n, struct ferry_buf *out)
{
    for (size_t k = 0; k < FERRY_COUNT(plain); k++) {
        ferry_buf_printf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", plain[k].name,
                         plain[k].help, plain[k].name, plain[k].type);
        for (size_t i = 0; i < n; i++) {
            ferry_buf_printf(out, PREFIX "%s{name=\"%s\"} %g\n", plain[k].name, queues[i].name,
                             plain[k].value(&queues[i].figures));
        }
    }
    write_times("queue_duration_seconds", "How long keys waited for a worker.", queues, n, false,
                out);
    write_times("work_duration_seconds", "How long keys were worked on.", queues, n, true, out);
}
