/* What a migration may do and how long it may take: the options of PUT /v1/migrations/UID. Pure.
 *
 * The names and defaults are those of KubeVirt's migration configuration where it has them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

enum { MIGRATE_CONNECTIONS_MAX = 64 };

enum migrate_strategy { MIGRATE_STRATEGY_FERRY, MIGRATE_STRATEGY_KUBEVIRT, MIGRATE_STRATEGY_COUNT };

/* KubeVirt's experimental.stallDetector; only its own strategy looks at it. */
struct migrate_stall {
    bool on;
    int64_t margin_percent, progress_timeout_s, switchover_timeout_s;
    double ewma_alpha, possible_factor, decay, completion_factor;
    bool search_minima;
};

/* KubeVirt's experimental.downtimeTuning, likewise. */
struct migrate_tuning {
    bool on;
    int64_t initial_ms, steps, start_iteration, cooldown_s;
};

struct migrate_options {
    enum migrate_strategy strategy;
    int64_t bandwidth_bytes_per_s; /* 0 = unlimited */
    bool allow_auto_converge, allow_post_copy, allow_workload_disruption, unsafe;
    int64_t completion_timeout_per_gib_s, progress_timeout_s; /* 0 = none */
    int64_t max_downtime_ms;
    int64_t parallel_connections; /* 0 = one stream; not together with post-copy */
    bool zstd;                    /* compressed; needs parallel connections */
    int64_t path_bytes_per_s;     /* measured throughput of the path; 0 = not known */
    struct migrate_stall stall;
    struct migrate_tuning tuning;
};

void migrate_options_init(struct migrate_options *o); /* KubeVirt's defaults */
/* `json` may be NULL. Absent fields keep their defaults. */
int migrate_options_decode(const yyjson_val *json, struct migrate_options *ret,
                           struct ferry_error *err);
yyjson_mut_val *migrate_options_json(yyjson_mut_doc *doc, const struct migrate_options *o);
