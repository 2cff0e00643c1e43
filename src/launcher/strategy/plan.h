/* What a move would be like, before it is made. Pure.
 *
 * A model of pre-copy is run under the very strategy that would steer the move, three times: as the
 * guest was seen to dirty its memory (expected), with a little less (low), and with three times as
 * much (high: guests are busier at other times). The truth is between the first and the last. */
#pragma once

#include <yyjson.h>

#include "launcher/strategy/strategy.h"

/* How a guest dirties memory: `bytes_per_s` at first, less as pages are dirtied again that are
 * dirty already, never more than `set_bytes` in all. */
struct plan_dirtying {
    int64_t bytes_per_s, set_bytes;
};

/* From the distinct bytes that were dirtied within one second and within two. `most`: the guest's
 * memory in use. */
struct plan_dirtying plan_dirtying_of(int64_t in_one_s, int64_t in_two_s, int64_t most);

struct plan_input {
    struct wire_options policy;
    int64_t guest_bytes;  /* its memory, */
    int64_t memory_bytes; /* and what of it is in use */
    int64_t disk_bytes;   /* of images that are copied */
    struct plan_dirtying dirtying;
    int64_t path_bytes_per_s; /* of the path, or the policy's limit when that is less */
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
    struct plan_case low, expected, high;
};

void plan_make(const struct plan_input *in, struct plan *ret);
/* The answer to POST /v1/plan. */
char *plan_json(const struct plan_input *in, const struct plan *p);
