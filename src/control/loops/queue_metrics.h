/* Figures of work queues in Prometheus' text format, under the names that KubeVirt gives them. */
#pragma once

#include "base/str.h"
#include "kube/queue.h"

struct queue_metrics {
    const char *name;
    struct kube_queue_figures figures;
};

void queue_metrics_write(const struct queue_metrics *queues, size_t n, struct ferry_buf *out);
