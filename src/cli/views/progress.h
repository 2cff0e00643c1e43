/* How far a move is, in words. Pure: samples come in, text goes out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire/wire_progress.h"
#include "base/str.h"

/* Seconds until nothing remains, as a band: `low` when the guest dirtied nothing more, `high` when
 * it goes on as now. Rounded up. PROGRESS_ETA_UNKNOWN before there is a rate; `high` is
 * PROGRESS_ETA_NEVER when memory is dirtied as fast as it is sent. */
enum { PROGRESS_ETA_UNKNOWN = -1, PROGRESS_ETA_NEVER = -2 };
struct progress_band {
    int64_t low_s, high_s;
};
struct progress_band progress_eta(const struct wire_progress *s);

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
void progress_line(const char *phase, const struct wire_progress *s, int width,
                   struct ferry_buf *out);
