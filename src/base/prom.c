#include "base/prom.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53 */

void ferry_prom_head(struct ferry_buf *out, const char *name, const char *type, const char *help)
{
    ferry_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(struct ferry_buf *out, const char *value)
{
    while (value && *value) {
        size_t n = strcspn(value, "\\\"\n");

        ferry_buf_append(out, value, n);
        value += n;
        if (*value) {
            ferry_buf_puts(out, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\");
            value++;
        }
    }
}

static void put_series(struct ferry_buf *out, const char *name, const char *suffix,
                       const struct ferry_label *labels)
{
    const char *before = "{";

    ferry_buf_puts(out, name);
    ferry_buf_puts(out, suffix);
    for (; labels && labels->name; labels++) {
        ferry_buf_printf(out, "%s%s=\"", before, labels->name);
        put_value(out, labels->value);
        ferry_buf_puts(out, "\"");
        before = ",";
    }
    ferry_buf_puts(out, *before == ',' ? "} " : " ");
}

static void put_number(struct ferry_buf *out, double value)
{
    bool whole = fabs(value) <= WHOLE_MAX && value == (double)(int64_t)value;

    ferry_buf_printf(out, whole ? "%.0f\n" : "%.15g\n", value);
}

static void put(struct ferry_buf *out, const char *name, const char *suffix,
                const struct ferry_label *labels, double value)
{
    put_series(out, name, suffix, labels);
    put_number(out, value);
}

void ferry_prom_sample(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                       double value)
{
    put(out, name, "", labels, value);
}

void ferry_prom_time(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                     int64_t unix_ms)
{
    put_series(out, name, "", labels);
    ferry_buf_printf(out, "%.3f\n", (double)unix_ms / 1000);
}

void ferry_prom_histogram(struct ferry_buf *out, const char *name, const struct ferry_label *labels,
                          const struct ferry_prom_histogram *h)
{
    struct ferry_label with[FERRY_PROM_LABELS + 2] = {{.name = NULL}};
    char bound[32] = "+Inf";
    size_t n = 0;

    for (; labels && labels[n].name; n++) {
        assert(n < FERRY_PROM_LABELS);
        with[n] = labels[n];
    }
    with[n] = (struct ferry_label){"le", bound};
    for (size_t i = 0; i < h->n; i++) {
        snprintf(bound, sizeof(bound), "%g", h->bounds[i]);
        put(out, name, "_bucket", with, (double)h->buckets[i]);
    }
    snprintf(bound, sizeof(bound), "+Inf");
    put(out, name, "_bucket", with, (double)h->count);
    put(out, name, "_sum", labels, h->sum);
    put(out, name, "_count", labels, (double)h->count);
}
