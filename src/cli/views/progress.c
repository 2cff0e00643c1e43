#include "cli/views/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/wire/wire_mode.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_progress.h"
#include "base/count.h"

enum { BAR = 20, FULL_LINE = 150 };

struct progress_band progress_eta(const struct wire_progress *s)
{
    if (s->remaining_bytes == 0) {
        return (struct progress_band){0, 0};
    }
    if (s->bytes_per_s == 0) {
        return (struct progress_band){PROGRESS_ETA_UNKNOWN, PROGRESS_ETA_UNKNOWN};
    }
    /* What the guest dirties waits for the next round, and what it dirties meanwhile for the one
     * after: a geometric series, whose sum is the rest over the difference of the rates. In the
     * other modes nothing is sent twice. */
    bool again = ferry_str_empty(s->mode) || wire_mode_is(s->mode, MODE_PRE_COPY);
    int64_t net = again ? s->bytes_per_s - s->dirty_bytes_per_s : s->bytes_per_s;
    int64_t low = (s->remaining_bytes + s->bytes_per_s - 1) / s->bytes_per_s;

    return (struct progress_band){low, net <= 0 ? PROGRESS_ETA_NEVER
                                                : (s->remaining_bytes + net - 1) / net};
}

/* ---- words --------------------------------------------------------------------------------- */

char *progress_bytes(int64_t bytes, char buf[PROGRESS_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes / 1024;
    size_t u = 0;

    if (bytes < 1024) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 " B", bytes);
        return buf;
    }
    while (v >= 1023.95 && u + 1 < FERRY_COUNT(units)) {
        v /= 1024;
        u++;
    }
    snprintf(buf, PROGRESS_TEXT, "%.1f %s", v, units[u]);
    return buf;
}

char *progress_duration(int64_t ms, char buf[PROGRESS_TEXT])
{
    int64_t s = ms / 1000;

    if (ms < 1000) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 " ms", ms < 0 ? 0 : ms);
    } else if (ms < 60000) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
    } else {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 " min %02" PRId64 " s", s / 60, s % 60);
    }
    return buf;
}

char *progress_seconds(int64_t s, char buf[PROGRESS_TEXT])
{
    if (s >= 60) {
        return progress_duration(s * 1000, buf);
    }
    snprintf(buf, PROGRESS_TEXT, "%" PRId64 " s", s);
    return buf;
}

char *progress_age(int64_t ms, char buf[PROGRESS_TEXT])
{
    int64_t s = ms < 0 ? 0 : ms / 1000;

    if (s < 120) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 "s", s);
    } else if (s < 120 * 60) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 "m", s / 60);
    } else if (s < 48 * 3600) {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 "h", s / 3600);
    } else {
        snprintf(buf, PROGRESS_TEXT, "%" PRId64 "d", s / 86400);
    }
    return buf;
}

/* ---- the line ------------------------------------------------------------------------------ */

static void put_bar(const struct wire_progress *s, struct ferry_buf *out)
{
    int64_t total = s->total_bytes > s->remaining_bytes ? s->total_bytes : s->remaining_bytes;
    int64_t done = total ? (total - s->remaining_bytes) * BAR / total : 0;

    ferry_buf_puts(out, "  [");
    for (int64_t i = 0; i < BAR; i++) {
        ferry_buf_puts(out, i < done ? "=" : i == done ? ">" : " ");
    }
    ferry_buf_puts(out, "]");
}

static void put_seconds(int64_t s, struct ferry_buf *out)
{
    char text[PROGRESS_TEXT];

    ferry_buf_puts(out, progress_seconds(s, text));
}

static void put_eta(const struct wire_progress *s, struct ferry_buf *out)
{
    struct progress_band eta = progress_eta(s);

    if (s->path_away) {
        ferry_buf_puts(out, "path away: goes on when it is back");
    } else if (eta.low_s == PROGRESS_ETA_UNKNOWN) {
        ferry_buf_puts(out, "ETA ...");
    } else if (eta.high_s == PROGRESS_ETA_NEVER && s->iteration > 1) {
        ferry_buf_puts(out, "ETA none at this rate");
    } else if (eta.high_s == PROGRESS_ETA_NEVER) {
        ferry_buf_puts(out, "ETA over ");
        put_seconds(eta.low_s, out);
    } else if (eta.low_s == eta.high_s) {
        ferry_buf_puts(out, "ETA ");
        put_seconds(eta.low_s, out);
    } else {
        ferry_buf_puts(out, "ETA ");
        put_seconds(eta.low_s, out);
        ferry_buf_puts(out, " to ");
        put_seconds(eta.high_s, out);
    }
}

static void put_remaining(const struct wire_progress *s, struct ferry_buf *out)
{
    char a[PROGRESS_TEXT], b[PROGRESS_TEXT];

    ferry_buf_printf(out, "remaining %s of %s", progress_bytes(s->remaining_bytes, a),
                     progress_bytes(s->total_bytes, b));
}

static void put_left(const struct wire_progress *s, struct ferry_buf *out)
{
    char a[PROGRESS_TEXT];

    ferry_buf_printf(out, "%s left", progress_bytes(s->remaining_bytes, a));
}

static void put_rate(const struct wire_progress *s, struct ferry_buf *out)
{
    char a[PROGRESS_TEXT];

    ferry_buf_printf(out, "rate %s/s", progress_bytes(s->bytes_per_s, a));
}

static void put_dirty(const struct wire_progress *s, struct ferry_buf *out)
{
    char a[PROGRESS_TEXT];

    ferry_buf_printf(out, "dirty %s/s", progress_bytes(s->dirty_bytes_per_s, a));
}

static void put_round(const struct wire_progress *s, struct ferry_buf *out)
{
    if (s->iteration) {
        ferry_buf_printf(out, "round %" PRId64, s->iteration);
    }
}

static void put_downtime(const struct wire_progress *s, struct ferry_buf *out)
{
    char a[PROGRESS_TEXT];

    if (s->expected_downtime_ms) {
        ferry_buf_printf(out, "downtime %s", progress_duration(s->expected_downtime_ms, a));
    }
}

static void put_throttle(const struct wire_progress *s, struct ferry_buf *out)
{
    if (s->throttle_percent) {
        ferry_buf_printf(out, "throttled %" PRId64 "%%", s->throttle_percent);
    }
}

static void put_mode(const struct wire_progress *s, struct ferry_buf *out)
{
    if (!ferry_str_empty(s->mode) && !wire_mode_is(s->mode, MODE_PRE_COPY)) {
        ferry_buf_puts(out, s->mode);
    }
}

struct item {
    void (*put)(const struct wire_progress *s, struct ferry_buf *out); /* nothing = not told */
};

/* One after the other, two blanks between; with `room` > 0 up to the first that does not fit. */
static void put_items(const struct wire_progress *s, const struct item *items, size_t room,
                      struct ferry_buf *out)
{
    size_t begin = out->len;

    for (size_t i = 0; items[i].put; i++) {
        ferry_cleanup_buf struct ferry_buf text = {0};

        items[i].put(s, &text);
        if (text.len == 0) {
            continue;
        }
        if (room > 0 && out->len - begin + 2 + text.len > room) {
            return;
        }
        ferry_buf_printf(out, "  %s", text.data);
    }
}

static void cut(struct ferry_buf *out, size_t begin, int width)
{
    while (out->len > begin && out->data[out->len - 1] == ' ') {
        out->data[--out->len] = '\0';
    }
    if (width > 0 && out->len - begin > (size_t)width) {
        out->len = begin + (size_t)width;
        out->data[out->len] = '\0';
    }
}

void progress_line(const char *phase, const struct wire_progress *s, int width,
                   struct ferry_buf *out)
{
    static const struct item all[] = {{put_remaining}, {put_eta},   {put_rate},
                                      {put_dirty},     {put_round}, {put_downtime},
                                      {put_throttle},  {put_mode},  {0}};
    /* What matters most, and what is not as usual, comes first. */
    static const struct item most[] = {{put_left},  {put_eta},      {put_rate},
                                       {put_mode},  {put_throttle}, {put_dirty},
                                       {put_round}, {put_downtime}, {0}};
    const char *word = wire_phase_shown(phase);
    size_t begin = out->len;

    ferry_buf_printf(out, "%-15s", word);
    if (s && width >= FULL_LINE) {
        put_bar(s, out);
    }
    if (s) {
        put_items(s, all, 0, out);
    }
    if (s && width > 0 && out->len - begin > (size_t)width) {
        size_t used = strlen(word);

        out->len = begin;
        ferry_buf_puts(out, word);
        put_items(s, most, (size_t)width > used ? (size_t)width - used : 1, out);
    }
    cut(out, begin, width);
}
