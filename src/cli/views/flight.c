#include "cli/views/flight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_mode.h"
#include "base/printable.h"
#include "cli/views/progress.h"
#include "cli/views/table.h"

enum { NO_DOWNTIME = -1 };

/* ---- reading ------------------------------------------------------------------------------- */

static void add_entry(struct flight *f, int64_t at_ms, char mark, char *text_take)
{
    f->entries = ferry_xrealloc(f->entries, f->n_entries + 1, sizeof(*f->entries));
    f->entries[f->n_entries++] = (struct flight_entry){at_ms, mark, ferry_printable_dup(text_take)};
    free(text_take);
}

static void add_sample(struct flight *f, int64_t at_ms, const yyjson_val *v)
{
    f->samples = ferry_xrealloc(f->samples, f->n_samples + 1, sizeof(*f->samples));
    f->samples[f->n_samples++] = (struct flight_sample){
        .at_ms = at_ms,
        .total_bytes = api_json_int(v, "/totalBytes", 0),
        .processed_bytes = api_json_int(v, "/processedBytes", 0),
        .remaining_bytes = api_json_int(v, "/remainingBytes", 0),
        .bytes_per_s = api_json_int(v, "/bytesPerS", 0),
        .dirty_bytes_per_s = api_json_int(v, "/dirtyBytesPerS", 0),
        .iteration = api_json_int(v, "/iteration", 0),
        .expected_downtime_ms = api_json_int(v, "/expectedDowntimeMs", NO_DOWNTIME),
        .throttle_percent = api_json_int(v, "/throttlePercent", 0),
    };
}

static char *start_text(const yyjson_val *v, const char *type)
{
    const char *strategy = api_json_str(v, "/options/strategy");
    char bytes[PROGRESS_TEXT];

    progress_bytes(api_json_int(v, "/guestBytes", 0), bytes);
    return ferry_asprintf(
        "%s: guest of %s, strategy %s%s%s%s", type, bytes, strategy ? strategy : "unknown",
        api_json_bool(v, "/options/allowAutoConverge", false) ? ", may slow it" : "",
        api_json_bool(v, "/options/allowPostCopy", false) ? ", post-copy allowed" : "",
        api_json_bool(v, "/options/allowWorkloadDisruption", false) ? ", may pause it" : "");
}

static char *plan_text(const yyjson_val *v)
{
    char low[PROGRESS_TEXT], high[PROGRESS_TEXT];
    const char *end = api_json_str(v, "/high/end");

    progress_duration(api_json_int(v, "/low/totalMs", 0), low);
    progress_duration(api_json_int(v, "/high/totalMs", 0), high);
    return ferry_asprintf("plan: %s to %s, %s at worst", low, high, end ? end : "?");
}

static char *decision_text(const yyjson_val *v)
{
    const char *action = api_json_str(v, "/action"), *why = api_json_str(v, "/text");
    const char *refused = api_json_str(v, "/refused");

    return ferry_asprintf("%s: %s%s%s", action ? action : "decision", why ? why : "",
                          refused ? "; refused: " : "", refused ? refused : "");
}

static char *end_text(const yyjson_val *v)
{
    const char *phase = api_json_str(v, "/phase"), *why = api_json_str(v, "/failureReason");
    int64_t ms = api_json_int(v, "/downtimeMs", NO_DOWNTIME);
    char downtime[PROGRESS_TEXT];

    if (!ferry_str_empty(why)) {
        return ferry_asprintf("%s: %s", phase ? phase : "over", why);
    }
    return ms > 0 ? ferry_asprintf("%s, the guest stood for %s", phase ? phase : "over",
                                   progress_duration(ms, downtime))
                  : ferry_strdup(phase ? phase : "over");
}

static void add_other(struct flight *f, int64_t at_ms, const char *type, const yyjson_val *v)
{
    const char *text = api_json_str(v, "/text");

    if (ferry_streq(type, "start") || ferry_streq(type, "reattach")) {
        add_entry(f, at_ms, 0, start_text(v, type));
    } else if (ferry_streq(type, "plan")) {
        add_entry(f, at_ms, 0, plan_text(v));
    } else if (ferry_streq(type, "decision")) {
        const char *action = api_json_str(v, "/action");

        add_entry(f, at_ms, ferry_streq(action, "post-copy") ? 'P' : 'd', decision_text(v));
    } else if (ferry_streq(type, "end")) {
        add_entry(f, at_ms, 'E', end_text(v));
    } else if (ferry_streq(type, "full")) {
        f->cut = true;
    } else {
        char mark = ferry_streq(type, "path") ? (ferry_streq(text, "away") ? '<' : '>') : 0;

        add_entry(f, at_ms, mark, ferry_asprintf("%s: %s", type, text ? text : ""));
    }
}

/* `*begun_ms` is the time of the first line, -1 before it. */
static void add_line(struct flight *f, const char *line, size_t len, int64_t *begun_ms)
{
    api_cleanup_doc yyjson_doc *doc = NULL;
    int64_t at_ms;

    if (len == 0 || api_json_parse(line, len, &doc, NULL) < 0) {
        return;
    }
    const yyjson_val *v = yyjson_doc_get_root(doc);
    const char *type = api_json_str(v, "/type"), *time = api_json_str(v, "/time");
    if (!type) {
        return;
    }
    if (!time || api_time_parse(time, &at_ms, NULL) < 0) {
        at_ms = *begun_ms < 0 ? 0 : *begun_ms + f->last_ms;
    }
    if (*begun_ms < 0) {
        *begun_ms = at_ms;
    }
    at_ms -= *begun_ms;
    at_ms = at_ms < f->last_ms ? f->last_ms : at_ms; /* a clock may be set back */
    f->last_ms = at_ms;
    if (ferry_streq(type, "sample")) {
        add_sample(f, at_ms, v);
    } else {
        add_other(f, at_ms, type, v);
    }
}

int flight_parse(const char *text, size_t len, struct flight *ret, struct ferry_error *err)
{
    int64_t begun_ms = -1;

    for (const char *p = text, *end = text + len; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;

        add_line(ret, p, (size_t)(stop - p), &begun_ms);
        p = stop + 1;
    }
    if (begun_ms < 0) {
        return ferry_fail(err, FERRY_INVALID, "the flight record has no line that is understood");
    }
    return 0;
}

void flight_done(struct flight *f)
{
    for (size_t i = 0; i < f->n_entries; i++) {
        free(f->entries[i].text);
    }
    free(f->entries);
    free(f->samples);
    *f = (struct flight){0};
}

/* ---- rounds -------------------------------------------------------------------------------- */

static bool has_figures(const struct flight_sample *s)
{
    return s->total_bytes > 0;
}

/* Peak and mean of a round would hide each other; the last sample says how it stood at its end. */
static void round_row(struct cli_table *t, const struct flight_sample *first,
                      const struct flight_sample *last, int64_t took_ms, int64_t sent)
{
    char number[24], from[PROGRESS_TEXT], took[PROGRESS_TEXT], bytes[PROGRESS_TEXT];
    char left[PROGRESS_TEXT], rate[PROGRESS_TEXT], dirty[PROGRESS_TEXT], downtime[PROGRESS_TEXT];
    char throttle[24];

    snprintf(number, sizeof(number), "%" PRId64, first->iteration);
    snprintf(throttle, sizeof(throttle), "%" PRId64 " %%", last->throttle_percent);
    cli_table_row(
        t, (const char *const[]){
               number, progress_duration(first->at_ms, from), progress_duration(took_ms, took),
               progress_bytes(sent, bytes), progress_bytes(last->remaining_bytes, left),
               last->bytes_per_s > 0 ? progress_bytes(last->bytes_per_s, rate) : NULL,
               last->dirty_bytes_per_s > 0 ? progress_bytes(last->dirty_bytes_per_s, dirty) : NULL,
               last->expected_downtime_ms >= 0
                   ? progress_duration(last->expected_downtime_ms, downtime)
                   : NULL,
               last->throttle_percent > 0 ? throttle : NULL});
}

static void put_rounds(const struct flight *f, struct ferry_buf *out)
{
    static const char *const headers[] = {"ROUND",  "FROM",    "TOOK",     "SENT",     "REMAINS",
                                          "RATE/S", "DIRTY/S", "DOWNTIME", "THROTTLE", NULL};
    cli_table_cleanup struct cli_table t = {0};
    size_t first = 0;
    int64_t before = 0;

    cli_table_init(&t, headers);
    for (size_t i = 0; i < f->n_samples; i++) {
        const struct flight_sample *s = &f->samples[i];
        bool ends = i + 1 == f->n_samples || f->samples[i + 1].iteration != s->iteration;

        if (!has_figures(s)) {
            first = i + 1;
        } else if (ends) {
            int64_t until = i + 1 == f->n_samples ? f->last_ms : f->samples[i + 1].at_ms;

            round_row(&t, &f->samples[first], s, until - f->samples[first].at_ms,
                      s->processed_bytes - before);
            before = s->processed_bytes;
            first = i + 1;
        }
    }
    if (t.n_rows > 0) {
        ferry_buf_puts(out, "Rounds:\n");
        cli_table_render(&t, out);
        ferry_buf_puts(out, "\n");
    }
}

void flight_render(const struct flight *f, struct ferry_buf *out)
{
    char when[PROGRESS_TEXT];

    put_rounds(f, out);
    ferry_buf_puts(out, "Record:\n");
    for (size_t i = 0; i < f->n_entries; i++) {
        ferry_buf_printf(out, "  %10s  %s\n", progress_duration(f->entries[i].at_ms, when),
                         f->entries[i].text);
    }
    if (f->cut) {
        ferry_buf_puts(out, "  (the record was full before the move was over)\n");
    }
}

/* ---- plot ---------------------------------------------------------------------------------- */

static void put_chart(const struct flight *f, const char *title, size_t offset, int width,
                      enum plot_charset charset, struct ferry_buf *out)
{
    struct plot_point *points = ferry_xcalloc(f->n_samples + 1, sizeof(*points));
    char peak[PROGRESS_TEXT + 2];
    int64_t top = 0;

    for (size_t i = 0; i < f->n_samples; i++) {
        int64_t value;

        memcpy(&value, (const char *)&f->samples[i] + offset, sizeof(value));
        points[i] = (struct plot_point){f->samples[i].at_ms, value};
        top = value > top ? value : top;
    }
    progress_bytes(top, peak);
    plot_render(&(struct plot){.title = title,
                               .peak = peak,
                               .points = points,
                               .n_points = f->n_samples,
                               .end_ms = f->last_ms},
                width, charset, out);
    free(points);
}

void flight_plot(const struct flight *f, int width, enum plot_charset charset,
                 struct ferry_buf *out)
{
    struct plot_mark *marks = ferry_xcalloc(f->n_entries + 1, sizeof(*marks));
    size_t n = 0;

    if (f->n_samples == 0) {
        ferry_buf_puts(out, "The record has no samples: nothing was sent.\n");
        free(marks);
        return;
    }
    put_chart(f, "remaining", offsetof(struct flight_sample, remaining_bytes), width, charset, out);
    put_chart(f, "sent per second", offsetof(struct flight_sample, bytes_per_s), width, charset,
              out);
    put_chart(f, "dirtied per second", offsetof(struct flight_sample, dirty_bytes_per_s), width,
              charset, out);
    for (size_t i = 0; i < f->n_entries; i++) {
        if (f->entries[i].mark) {
            marks[n++] = (struct plot_mark){f->entries[i].at_ms, f->entries[i].mark};
        }
    }
    plot_axis(f->last_ms, marks, n, width, charset, out);
    ferry_buf_puts(out, "d decision  P post-copy  < path away  > path back  E end\n");
    free(marks);
}

/* ---- modes --------------------------------------------------------------------------------- */

int64_t flight_mode_since(const struct flight *f, const char *mode)
{
    const char *decision = wire_mode_is(mode, MODE_POST_COPY) ? "post-copy:"
                           : wire_mode_is(mode, MODE_PAUSED)  ? "pause:"
                                                              : NULL;

    if (wire_mode_is(mode, MODE_PRE_COPY)) {
        return 0;
    }
    for (size_t i = f->n_entries; decision && i-- > 0;) {
        if (ferry_str_starts(f->entries[i].text, decision)) {
            return f->entries[i].at_ms;
        }
    }
    return -1;
}
