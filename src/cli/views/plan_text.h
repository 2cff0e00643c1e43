/* What a move would be like, in words. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/kinds.h"
#include "api/wire/wire_accelerator.h"
#include "base/error.h"
#include "base/str.h"

/* One end of the band. */
struct plan_text_case {
    char end[16]; /* "switch-over", "post-copy", "pause", "abort" */
    int64_t rounds, total_ms, downtime_ms;
};

/* The answer of a node to POST /v1/plan (docs/contracts/node-api.md). */
struct plan_text {
    int64_t data_bytes, dirty_bytes_per_s, path_bytes_per_s;
    bool path_measured;
    struct plan_text_case low, high;
};
int plan_text_parse(const char *json, size_t len, struct plan_text *ret, struct ferry_error *err);

/* When the guest was started, by the API's word; 0 = not told. A move does not change it. */
int64_t plan_text_started_ms(const struct api_object *vmi);

/* A guest that boots fills its memory: a sample of that says nothing about a move later on. How
 * long to wait until one is worth taking; 0 = now. */
enum { PLAN_TEXT_SETTLE_MS = 10000, PLAN_TEXT_YOUNG_MS = 120000 };
int64_t plan_text_too_early_ms(int64_t started_ms, int64_t now_ms);

/* `accelerator` is what runs the guest, here and there. `age_ms`: since the guest was started, -1 =
 * not known. `to` may be NULL: any node; `policy` NULL: none applies. */
void plan_text_render(const struct plan_text *p, const char *vm, const char *from, const char *to,
                      const char *policy, enum wire_accelerator accelerator, int64_t age_ms,
                      struct ferry_buf *out);
