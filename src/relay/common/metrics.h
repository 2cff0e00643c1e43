/* What a relay tells Prometheus. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* What streams that are over have carried, by role. Streams add to it when they end. */
struct relay_totals {
    atomic_uint_fast64_t streams, bytes_in, bytes_out, replayed, resumes;
};

/* One role's figures at one moment. */
struct relay_figures {
    uint64_t moves, open, away, rate_in, rate_out;
    uint64_t streams, bytes_in, bytes_out, replayed, resumes; /* counters: they never fall */
};

/* The counters of `now`, or of `*shown` where those are higher, go to both: a stream that ends
 * while figures are collected may be missing in them, but a counter must not fall for it. */
void relay_figures_settle(struct relay_figures *now, struct relay_figures *shown);

/* `figures` by role: enum relay_role. */
void relay_metrics_render(const struct relay_figures figures[2], uint64_t rate_limit, bool draining,
                          struct ferry_buf *out);
