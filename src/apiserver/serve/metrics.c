#include "apiserver/serve/metrics.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/count.h"

enum { CLASSES = 6 }; /* by the first digit of the code */

static const char *const kind_names[] = {
    [METRICS_READ] = "read",
    [METRICS_WATCH] = "watch",
    [METRICS_WRITE] = "write",
    [METRICS_OTHER] = "other",
};
_Static_assert(FERRY_COUNT(kind_names) == METRICS_KIND_COUNT, "one name per kind");

static atomic_ullong calls[METRICS_KIND_COUNT][CLASSES];
static atomic_ullong time_ns[METRICS_KIND_COUNT];

void metrics_count(enum metrics_kind kind, int code, int64_t took_ns)
{
    int class = code / 100;

    if (class > 0 && class < CLASSES) {
        atomic_fetch_add_explicit(&calls[kind][class], 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&time_ns[kind], (unsigned long long)took_ns, memory_order_relaxed);
}

static void put_calls(struct ferry_buf *out)
{
    ferry_buf_puts(out, "# HELP ferry_apiserver_requests_total Calls that were answered.\n"
                        "# TYPE ferry_apiserver_requests_total counter\n");
    for (size_t k = 0; k < METRICS_KIND_COUNT; k++) {
        for (size_t c = 1; c < CLASSES; c++) {
            unsigned long long n = atomic_load_explicit(&calls[k][c], memory_order_relaxed);

            if (n) {
                ferry_buf_printf(
                    out, "ferry_apiserver_requests_total{kind=\"%s\",code=\"%zuxx\"} %llu\n",
                    kind_names[k], c, n);
            }
        }
    }
    ferry_buf_puts(out, "# HELP ferry_apiserver_request_seconds_total Time spent on them.\n"
                        "# TYPE ferry_apiserver_request_seconds_total counter\n");
    for (size_t k = 0; k < METRICS_KIND_COUNT; k++) {
        ferry_buf_printf(out, "ferry_apiserver_request_seconds_total{kind=\"%s\"} %.6f\n",
                         kind_names[k],
                         (double)atomic_load_explicit(&time_ns[k], memory_order_relaxed) /
                             (double)FERRY_NS_PER_S);
    }
}

void metrics_write(struct store *store, struct ferry_buf *out)
{
    put_calls(out);
    ferry_buf_printf(out,
                     "# HELP ferry_apiserver_resource_version The newest version.\n"
                     "# TYPE ferry_apiserver_resource_version counter\n"
                     "ferry_apiserver_resource_version %llu\n"
                     "# HELP ferry_apiserver_objects Objects that are stored.\n"
                     "# TYPE ferry_apiserver_objects gauge\n",
                     (unsigned long long)store_version(store));
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        cleanup_entry_list struct entry_list list = {0};

        store_list(store, r, NULL, &list);
        ferry_buf_printf(out, "ferry_apiserver_objects{group=\"%s\",resource=\"%s\"} %zu\n",
                         r->group, r->plural, list.n);
    }
}
