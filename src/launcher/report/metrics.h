/* The answer to GET /metrics: Prometheus' text format. Pure.
 *
 * KubeVirt's names where it has them; `ferry_` for what they lack. The node is left to whoever
 * collects: a launcher does not know it. */
#pragma once

#include "base/str.h"
#include "launcher/report/state.h"
#include "launcher/strategy/sample.h"

struct launcher_metrics {
    const char *namespace_, *name; /* of the VMI */
    const struct state_migration *migration;
    const struct launcher_sample *sample; /* the latest of the current migration */
    int64_t dirty_bytes_per_s; /* of the guest while it is not moved; negative = not known */
};

/* Appends to `ret`. Figures of a job are there only while it runs, as KubeVirt has it. */
void launcher_metrics_write(const struct launcher_metrics *in, struct ferry_buf *ret);
