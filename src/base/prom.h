/* Figures in Prometheus' text format. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct ferry_label {
    const char *name, *value; /* a value of NULL is written as "" */
};
/* FERRY_LABELS({"node", node}, {"role", "source"}); NULL stands for none. */
#define FERRY_LABELS(...) ((const struct ferry_label[]){__VA_ARGS__, {.name = NULL}})

/* What stands before the samples of a figure. `type`: "gauge", "counter", "histogram". */
void ferry_prom_head(struct ferry_buf *out, const char *name, const char *type, const char *help);

/* One sample. Whole numbers are written as such up to 2^53, as far as a reader takes them. */
void ferry_prom_sample(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                       double value);
/* A point in time, in seconds. */
void ferry_prom_time(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                     int64_t unix_ms);

struct ferry_prom_histogram {
    const double *bounds;              /* `n` of them, rising */
    const unsigned long long *buckets; /* how many were at most the bound */
    size_t n;
    unsigned long long count; /* of all */
    double sum;
};
/* All samples of one histogram. At most FERRY_PROM_LABELS labels. */
void ferry_prom_histogram(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                          const struct ferry_prom_histogram *h);
enum { FERRY_PROM_LABELS = 8 };
