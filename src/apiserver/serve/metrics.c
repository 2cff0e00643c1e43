#include "apiserver/serve/metrics.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/prom.h"

#define REQUESTS "ferry_apiserver_requests_total"
#define REQUEST_SECONDS "ferry_apiserver_request_seconds_total"
#define VERSION "ferry_apiserver_resource_version"
#define OBJECTS "ferry_apiserver_objects"

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

void apiserver_metrics_count(enum metrics_kind kind, int code, int64_t took_ns)
{
    int class = code / 100;

    if (class > 0 && class < CLASSES) {
        atomic_fetch_add_explicit(&calls[kind][class], 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&time_ns[kind], (unsigned long long)took_ns, memory_order_relaxed);
}

static void put_calls(struct ferry_buf *out)
{
    ferry_prom_head(out, REQUESTS, "counter", "Calls that were answered.");
    for (size_t k = 0; k < METRICS_KIND_COUNT; k++) {
        for (size_t c = 1; c < CLASSES; c++) {
            unsigned long long n = atomic_load_explicit(&calls[k][c], memory_order_relaxed);

            if (n) {
                const char code[] = {(char)('0' + c), 'x', 'x', '\0'};

                ferry_prom_sample(out, REQUESTS,
                                  FERRY_LABELS({"kind", kind_names[k]}, {"code", code}), (double)n);
            }
        }
    }
    ferry_prom_head(out, REQUEST_SECONDS, "counter", "Time spent on them.");
    for (size_t k = 0; k < METRICS_KIND_COUNT; k++) {
        ferry_prom_sample(out, REQUEST_SECONDS, FERRY_LABELS({"kind", kind_names[k]}),
                          (double)atomic_load_explicit(&time_ns[k], memory_order_relaxed) /
                              (double)FERRY_NS_PER_S);
    }
}

void apiserver_metrics_write(struct store *store, struct ferry_buf *out)
{
    put_calls(out);
    ferry_prom_head(out, VERSION, "counter", "The newest version.");
    ferry_prom_sample(out, VERSION, NULL, (double)store_version(store));
    ferry_prom_head(out, OBJECTS, "gauge", "Objects that are stored.");
    for (const struct api_resource *r = api_resources(); r->plural; r++) {
        cleanup_entry_list struct entry_list list = {0};

        store_list(store, r, NULL, &list);
        ferry_prom_sample(out, OBJECTS, FERRY_LABELS({"group", r->group}, {"resource", r->plural}),
                          (double)list.n);
    }
}
