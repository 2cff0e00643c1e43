/* What a move would be like, before it is made. Pure.
 *
 * A model of pre-copy is run under the very strategy that would steer the move, twice: with the
 * sampled dirty rate as it is, and with three times as much, because guests dirty more while they
 * are moved (and sampling sees distinct pages only). The truth is expected between the two. */
#pragma once

#include <yyjson.h>

#include "launcher/strategy.h"

struct plan_input {
    struct migrate_options policy;
    int64_t data_bytes;        /* what must be sent: memory that is in use, and disks */
    int64_t dirty_bytes_per_s; /* sampled */
    int64_t path_bytes_per_s;  /* of the path, or the policy's limit when that is less */
    bool vfio;
};

enum plan_end {
    PLAN_SWITCHES_OVER, /* pre-copy converges */
    PLAN_POST_COPY,
    PLAN_PAUSE,
    PLAN_ABORT,
    PLAN_END_COUNT
};

struct plan_case {
    enum plan_end end;
    int64_t rounds, total_ms,
        downtime_ms; /* downtime: of the guest; of post-copy the switch only */
};

struct plan {
    struct plan_case low, high;
};

void plan_make(const struct plan_input *in, struct plan *ret);
/* The answer to POST /v1/plan. */
char *plan_json(const struct plan_input *in, const struct plan *p);
