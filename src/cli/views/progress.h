/* How far a move is, in words. Pure: samples come in, text goes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/* One sample of a running move, as in the annotation ferry.io/progress of its VM. */
struct progress_sample {
    char uid[40];  /* of the move */
    char mode[16]; /* "PreCopy", ... */
    int64_t elapsed_ms, total_bytes, processed_bytes, remaining_bytes;
    int64_t bytes_per_s, dirty_bytes_per_s;
    int64_t iteration, expected_downtime_ms, throttle_percent;
    bool path_away; /* the transport waits for the way to the target */
};
int progress_parse(const char *json, size_t len, struct progress_sample *ret,
                   struct ferry_error *err);

/* How a move ended, as in the annotation ferry.io/result of its migration; -1 = not told. */
struct progress_result {
    int64_t downtime_ms, total_ms, transferred_bytes;
};
int progress_parse_result(const char *json, size_t len, struct progress_result *ret,
                          struct ferry_error *err);

/* Seconds until nothing remains, as a band: `low` when the guest dirtied nothing more, `high` when
 * it goes on as now. Rounded up. PROGRESS_ETA_UNKNOWN before there is a rate; `high` is
 * PROGRESS_ETA_NEVER when memory is dirtied as fast as it is sent. */
enum { PROGRESS_ETA_UNKNOWN = -1, PROGRESS_ETA_NEVER = -2 };
struct progress_band {
    int64_t low_s, high_s;
};
struct progress_band progress_eta(const struct progress_sample *s);

enum { PROGRESS_TEXT = 32 };
/* "34.2 MiB"; returns `buf`. */
char *progress_bytes(int64_t bytes, char buf[PROGRESS_TEXT]);
/* "850 ms", "12.3 s", "4 min 05 s"; returns `buf`. */
char *progress_duration(int64_t ms, char buf[PROGRESS_TEXT]);
/* What is known in whole seconds: "5 s", "4 min 05 s"; returns `buf`. */
char *progress_seconds(int64_t s, char buf[PROGRESS_TEXT]);
/* Age as kubectl shows it: "45s", "12m", "3h", "2d"; returns `buf`. */
char *progress_age(int64_t ms, char buf[PROGRESS_TEXT]);

/* One line about a move: phase, and while it runs the sample (may be NULL). No newline. With
 * `width` > 0 there is a bar when there is room for it, and the line is never longer than that. */
void progress_line(const char *phase, const struct progress_sample *s, int width,
                   struct ferry_buf *out);
