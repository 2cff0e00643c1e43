/* The flight record of a move (docs/contracts/launcher.md: one line of JSON per sample, decision
 * and event) as a person reads it. Pure: text in, text out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "cli/views/plot.h"

/* One sample; times count from the first line of the record. */
struct flight_sample {
    int64_t at_ms, total_bytes, processed_bytes, remaining_bytes;
    int64_t bytes_per_s, dirty_bytes_per_s;
    int64_t iteration, expected_downtime_ms, throttle_percent; /* downtime: -1 = not told */
};

/* Anything but a sample, in words. */
struct flight_entry {
    int64_t at_ms;
    char mark; /* how a plot marks its time; 0 = not at all */
    char *text;
};

struct flight {
    struct flight_sample *samples;
    size_t n_samples;
    struct flight_entry *entries;
    size_t n_entries;
    int64_t last_ms;
    bool cut; /* the record was full before the move was over */
};

/* Lines that are not understood are left out: newer launchers may write more. INVALID when not one
 * line is a record's. */
int flight_parse(const char *text, size_t len, struct flight *ret, struct ferry_error *err);
void flight_done(struct flight *f);
#define flight_cleanup ferry_cleanup(flight_done)

/* The rounds as a table, then every decision and event with its time. */
void flight_render(const struct flight *f, struct ferry_buf *out);

/* Remaining, bandwidth and dirty rate over time, `width` columns wide. */
void flight_plot(const struct flight *f, int width, enum plot_charset charset,
                 struct ferry_buf *out);

/* When the move went over to that mode ("PostCopy", "Paused"; 0 for "PreCopy"), or -1. */
int64_t flight_mode_since(const struct flight *f, const char *mode);
