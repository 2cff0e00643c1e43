#include "cli/views/moveline.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "api/wire/wire_result.h"
#include "base/printable.h"

bool moveline_sample(const struct api_migration *m, const struct api_vmi *vmi,
                     struct wire_progress *ret)
{
    /* What the annotation tells may still be about an earlier move. */
    return vmi && wire_phase_is(m->phase, PHASE_RUNNING) &&
           wire_progress_of(api_map_get(&vmi->meta.annotations, ANNOTATION_PROGRESS), m->meta.uid,
                            ret) &&
           ret->total_bytes > 0;
}

/* The controller takes a wait back a moment after the phase has gone on. */
static bool still_waits(const char *phase, enum wire_reason reason)
{
    switch (wire_phase_of(phase)) {
    case PHASE_PREPARING_TARGET:
        return reason == REASON_TARGET_PREPARING || reason == REASON_PATH_AWAY;
    case PHASE_TARGET_READY:
        return reason == REASON_SOURCE_BUSY || reason == REASON_PATH_AWAY;
    case PHASE_RUNNING:
        return reason == REASON_PATH_AWAY;
    default:
        return true;
    }
}

static void put_waiting(const struct api_migration *m, struct ferry_buf *out)
{
    wire_cleanup_queue struct wire_queue q = {0};

    if (wire_queue_read(api_map_get(&m->meta.annotations, ANNOTATION_QUEUE), &q) &&
        !ferry_str_empty(q.message) && still_waits(m->phase, q.reason)) {
        size_t begin = out->len;

        ferry_buf_printf(out, "  waits: %s", q.message);
        ferry_buf_one_line(out, begin);
    }
}

void moveline_put(const struct api_migration *m, const struct api_vmi *vmi, int width,
                  struct ferry_buf *out)
{
    struct wire_progress sample;
    size_t begin = out->len;
    bool has_sample = moveline_sample(m, vmi, &sample);

    progress_line(m->phase, has_sample ? &sample : NULL, width, out);
    if (!has_sample) {
        put_waiting(m, out);
    }
    if (width > 0 && out->len - begin > (size_t)width) {
        out->len = begin + (size_t)width;
        out->data[out->len] = '\0';
    }
}

struct wire_result moveline_result(const struct api_migration *m, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = outcome_state(m, vmi);
    struct wire_result r;

    wire_result_read(api_map_get(&m->meta.annotations, ANNOTATION_RESULT), &r);
    if (r.total_ms < 0 && s && s->start_ms && s->end_ms >= s->start_ms) {
        r.total_ms = s->end_ms - s->start_ms;
    }
    return r;
}

static void put_success(const struct api_migration *m, const struct api_vmi *vmi,
                        const char *source, struct ferry_buf *out)
{
    const struct wire_result r = moveline_result(m, vmi);
    const char *from = outcome_from(m, vmi), *to = outcome_to(m, vmi);
    char buf[PROGRESS_TEXT];

    from = from ? from : source;
    ferry_buf_printf(out, "%s moved from %s to %s", m->vmi_name, from ? from : "?", to ? to : "?");
    if (r.total_ms >= 0) {
        ferry_buf_printf(out, " in %s", progress_duration(r.total_ms, buf));
    }
    if (r.downtime_ms >= 0) {
        ferry_buf_printf(out, "; it stood still for %s", progress_duration(r.downtime_ms, buf));
    }
    if (r.transferred_bytes >= 0) {
        ferry_buf_printf(out, "; %s sent", progress_bytes(r.transferred_bytes, buf));
    }
}

void moveline_end(const struct api_migration *m, const struct api_vmi *vmi, const char *source,
                  enum outcome outcome, struct ferry_buf *out)
{
    size_t begin = out->len;

    if (outcome == OUTCOME_SUCCEEDED) {
        put_success(m, vmi, source, out);
        ferry_buf_one_line(out, begin);
        return;
    }
    if (outcome == OUTCOME_CANCELLED) {
        ferry_buf_printf(out, "The move of %s was cancelled", m->vmi_name);
    } else {
        ferry_buf_printf(out, "%s did not move: %s", m->vmi_name, outcome_reason(m, vmi));
    }
    if (vmi && wire_phase_is(vmi->phase, PHASE_RUNNING)) {
        ferry_buf_printf(out, "; it runs on %s", vmi->node_name);
    } else {
        ferry_buf_printf(out, "; the VM is %s", vmi && vmi->phase ? vmi->phase : "gone");
    }
    ferry_buf_one_line(out, begin);
}

bool moveline_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1 && !ferry_streq(getenv("TERM"), "dumb");
}

static struct winsize window(void)
{
    struct winsize size = {0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* else 0: not known */
    return size;
}

int moveline_terminal_width(void)
{
    struct winsize size = window();

    return size.ws_col > 0 ? size.ws_col : 80;
}

int moveline_terminal_height(void)
{
    struct winsize size = window();

    return size.ws_row > 0 ? size.ws_row : 24;
}
