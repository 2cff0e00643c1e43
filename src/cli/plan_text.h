/* What a move would be like, in words. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* One end of the band. */
struct plan_text_case {
    char end[16]; /* "switch-over", "post-copy", "pause", "abort" */
    int64_t rounds, total_ms, downtime_ms;
};

/* The answer of a node to POST /v1/plan (docs/contracts.md). */
struct plan_text {
    int64_t data_bytes, dirty_bytes_per_s, path_bytes_per_s;
    bool path_measured;
    struct plan_text_case low, high;
};
int plan_text_parse(const char *json, size_t len, struct plan_text *ret, struct ferry_error *err);

/* `to` may be NULL: any node; `policy` NULL: none applies. */
void plan_text_render(const struct plan_text *p, const char *vm, const char *from, const char *to,
                      const char *policy, struct ferry_buf *out);
