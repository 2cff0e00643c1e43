/* What a migration may do and how long it may take: the options of PUT /v1/migrations/UID, as both
 * ends have them. Pure.
 *
 * The names and defaults are those of KubeVirt's migration configuration where it has them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

enum { WIRE_CONNECTIONS_MAX = 64 };

enum wire_strategy { WIRE_STRATEGY_FERRY, WIRE_STRATEGY_KUBEVIRT, WIRE_STRATEGY_COUNT };

/* KubeVirt's experimental.stallDetector; only its own strategy looks at it. */
struct wire_stall {
    bool on;
    int64_t margin_percent, progress_timeout_s, switchover_timeout_s;
    double ewma_alpha, possible_factor, decay, completion_factor;
    bool search_minima;
};

/* KubeVirt's experimental.downtimeTuning, likewise. */
struct wire_tuning {
    bool on;
    int64_t initial_ms, steps, start_iteration, cooldown_s;
};

struct wire_options {
    enum wire_strategy strategy;
    int64_t bandwidth_bytes_per_s; /* 0 = unlimited */
    bool allow_auto_converge, allow_post_copy, allow_workload_disruption, unsafe;
    int64_t completion_timeout_per_gib_s, progress_timeout_s; /* 0 = none */
    int64_t max_downtime_ms;
    int64_t parallel_connections; /* 0 = one stream; not together with post-copy */
    bool zstd;                    /* compressed; needs parallel connections */
    int64_t path_bytes_per_s;     /* measured throughput of the path; 0 = not known */
    struct wire_stall stall;
    struct wire_tuning tuning;
};

enum wire_option { /* the members of the object but those with members of their own */
                   WIRE_OPTION_BANDWIDTH,
                   WIRE_OPTION_AUTO_CONVERGE,
                   WIRE_OPTION_POST_COPY,
                   WIRE_OPTION_DISRUPTION,
                   WIRE_OPTION_UNSAFE,
                   WIRE_OPTION_COMPLETION_TIMEOUT,
                   WIRE_OPTION_PROGRESS_TIMEOUT,
                   WIRE_OPTION_MAX_DOWNTIME,
                   WIRE_OPTION_CONNECTIONS,
                   WIRE_OPTION_PATH,
                   WIRE_OPTION_STRATEGY,
                   WIRE_OPTION_COMPRESSION,
                   WIRE_OPTION_COUNT
};

void wire_options_init(struct wire_options *o); /* KubeVirt's defaults */
/* `json` may be NULL. Absent fields keep their defaults. */
int wire_options_read(const yyjson_val *json, struct wire_options *ret, struct ferry_error *err);
/* All of them. */
yyjson_mut_val *wire_options_write(yyjson_mut_doc *doc, const struct wire_options *o);

/* What a call to a launcher says; all else is left to its defaults. Of `o` the members whose bits
 * (1 << WIRE_OPTION_...) are in `said`; of `config` (a frozen migration configuration, or NULL) the
 * limits, and what only the strategy "kubevirt" reads, as they are: present zeros matter, they
 * switch a limit off, and the launcher refuses what it cannot use. JSON, the caller's. */
char *wire_options_request(const struct wire_options *o, unsigned said, const yyjson_val *config);
