#include "cli/views/moveline.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "api/json.h"
#include "api/object.h"

bool moveline_sample(const struct api_migration *m, const struct api_vmi *vmi,
                     struct progress_sample *ret)
{
    const char *text = vmi ? api_map_get(&vmi->meta.annotations, "ferry.io/progress") : NULL;

    /* What the annotation tells may still be about an earlier move. */
    return text && ferry_streq(m->phase, "Running") &&
           progress_parse(text, strlen(text), ret, NULL) == 0 &&
           ferry_streq(ret->uid, m->meta.uid) && ret->total_bytes > 0;
}

/* The controller takes a wait back a moment after the phase has gone on. */
static bool still_waits(const char *phase, const char *reason)
{
    if (ferry_streq(phase, "PreparingTarget")) {
        return ferry_streq(reason, "TargetPreparing") || ferry_streq(reason, "PathAway");
    }
    if (ferry_streq(phase, "TargetReady")) {
        return ferry_streq(reason, "SourceBusy") || ferry_streq(reason, "PathAway");
    }
    return !ferry_streq(phase, "Running") || ferry_streq(reason, "PathAway");
}

static void put_waiting(const struct api_migration *m, struct ferry_buf *out)
{
    const char *text = api_map_get(&m->meta.annotations, "ferry.io/queue");
    api_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    const yyjson_val *wait = yyjson_doc_get_root(doc);
    const char *message = doc ? api_json_str(wait, "/message") : NULL;

    if (!ferry_str_empty(message) && still_waits(m->phase, api_json_str(wait, "/reason"))) {
        ferry_buf_printf(out, "  waits: %s", message);
    }
}

void moveline_put(const struct api_migration *m, const struct api_vmi *vmi, int width,
                  struct ferry_buf *out)
{
    struct progress_sample sample;
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

struct progress_result moveline_result(const struct api_migration *m, const struct api_vmi *vmi)
{
    const char *text = api_map_get(&m->meta.annotations, "ferry.io/result");
    const struct api_migration_state *s = outcome_state(m, vmi);
    struct progress_result r = {-1, -1, -1};

    if (text) {
        progress_parse_result(text, strlen(text), &r, NULL);
    }
    if (r.total_ms < 0 && s && s->start_ms && s->end_ms >= s->start_ms) {
        r.total_ms = s->end_ms - s->start_ms;
    }
    return r;
}

static void put_success(const struct api_migration *m, const struct api_vmi *vmi,
                        const char *source, struct ferry_buf *out)
{
    const struct progress_result r = moveline_result(m, vmi);
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
    if (outcome == OUTCOME_SUCCEEDED) {
        put_success(m, vmi, source, out);
        return;
    }
    if (outcome == OUTCOME_CANCELLED) {
        ferry_buf_printf(out, "The move of %s was cancelled", m->vmi_name);
    } else {
        ferry_buf_printf(out, "%s did not move: %s", m->vmi_name, outcome_reason(m, vmi));
    }
    if (vmi && ferry_streq(vmi->phase, "Running")) {
        ferry_buf_printf(out, "; it runs on %s", vmi->node_name);
    } else {
        ferry_buf_printf(out, "; the VM is %s", vmi && vmi->phase ? vmi->phase : "gone");
    }
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
