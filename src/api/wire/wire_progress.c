#include "api/wire/wire_progress.h"

#include "api/wire/wire_launcher_status.h"
#include "base/count.h"
#include "base/str.h"

/* The figures, by member. */
static const struct {
    const char *key;
    size_t offset;
    int64_t max;
    bool sparse; /* written only when there is something */
} figures[] = {
#define FIGURE(key, member, max, sparse)                                                           \
    {                                                                                              \
        key, offsetof(struct wire_progress, member), max, sparse                                   \
    }
    FIGURE("elapsedMs", elapsed_ms, WIRE_MS_MAX, false),
    FIGURE("totalBytes", total_bytes, WIRE_BYTES_MAX, false),
    FIGURE("processedBytes", processed_bytes, WIRE_BYTES_MAX, false),
    FIGURE("remainingBytes", remaining_bytes, WIRE_BYTES_MAX, false),
    FIGURE("bytesPerS", bytes_per_s, WIRE_BYTES_MAX, false),
    FIGURE("dirtyBytesPerS", dirty_bytes_per_s, WIRE_BYTES_MAX, false),
    FIGURE("iteration", iteration, INT32_MAX, false),
    FIGURE("expectedDowntimeMs", expected_downtime_ms, WIRE_MS_MAX, true),
    FIGURE("throttlePercent", throttle_percent, 100, false),
    FIGURE("diskTotalBytes", disk_total_bytes, WIRE_BYTES_MAX, true),
    FIGURE("diskRemainingBytes", disk_remaining_bytes, WIRE_BYTES_MAX, true),
#undef FIGURE
};
enum { N_FIGURES = FERRY_COUNT(figures) };

static int64_t *figure_of(const struct wire_progress *p, size_t i)
{
    return (int64_t *)((char *)(uintptr_t)p + figures[i].offset);
}

void wire_progress_figures(const struct launcher_sample *sample, struct wire_progress *ret)
{
    const struct launcher_sample *s = sample;

    ret->has_figures = s->present;
    ret->elapsed_ms = s->elapsed_ms;
    ret->total_bytes = s->total_bytes;
    ret->processed_bytes = s->processed_bytes;
    ret->remaining_bytes = s->remaining_bytes;
    ret->bytes_per_s = s->bytes_per_s;
    ret->dirty_bytes_per_s = s->dirty_bytes_per_s;
    ret->iteration = s->iteration;
    ret->expected_downtime_ms = s->downtime_ms;
    ret->throttle_percent = s->throttle_percent;
    ret->disk_total_bytes = s->disk_total_bytes;
    ret->disk_remaining_bytes = s->disk_remaining_bytes;
    for (size_t i = 0; i < N_FIGURES; i++) {
        int64_t *figure = figure_of(ret, i);

        *figure = s->present && *figure >= 0 && *figure <= figures[i].max ? *figure : 0;
    }
}

static void read_figures(const yyjson_val *o, struct wire_progress *ret)
{
    ret->has_figures = false;
    for (size_t i = 0; i < N_FIGURES; i++) {
        ret->has_figures |= yyjson_obj_get((yyjson_val *)o, figures[i].key) != NULL;
        *figure_of(ret, i) = wire_json_number(o, figures[i].key, 0, figures[i].max, 0);
    }
}

bool wire_progress_read(const char *text, struct wire_progress *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    const yyjson_val *root = yyjson_doc_get_root(doc);

    *ret = (struct wire_progress){.downtime_ms = -1};
    if (!doc) {
        return false;
    }
    read_figures(root, ret);
    wire_json_copy(root, "uid", ret->uid, sizeof(ret->uid));
    wire_json_copy(root, "mode", ret->mode, sizeof(ret->mode));
    ret->done = ferry_streq(wire_json_text(root, "phase", WIRE_MODE),
                            wire_launcher_phase_text(LAUNCHER_SUCCEEDED));
    ret->path_away = ferry_streq(wire_json_text(root, "path", WIRE_MODE),
                                 wire_launcher_path_text(LAUNCHER_PATH_AWAY));
    ret->downtime_ms = wire_json_number(root, "downtimeMs", 0, WIRE_MS_MAX, -1);
    return true;
}

bool wire_progress_of(const char *text, const char *uid, struct wire_progress *ret)
{
    return wire_progress_read(text, ret) && !ferry_str_empty(uid) && ferry_streq(ret->uid, uid);
}

char *wire_progress_text(const struct wire_progress *p)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    for (size_t i = 0; p->has_figures && i < N_FIGURES; i++) {
        if (!figures[i].sparse || *figure_of(p, i)) {
            yyjson_mut_obj_add_int(doc, o, figures[i].key, *figure_of(p, i));
        }
    }
    yyjson_mut_obj_add_str(doc, o, "uid", p->uid);
    yyjson_mut_obj_add_str(doc, o, "mode", p->mode);
    yyjson_mut_obj_add_str(
        doc, o, "phase", wire_launcher_phase_text(p->done ? LAUNCHER_SUCCEEDED : LAUNCHER_RUNNING));
    yyjson_mut_obj_add_str(
        doc, o, "path",
        wire_launcher_path_text(p->path_away ? LAUNCHER_PATH_AWAY : LAUNCHER_PATH_UP));
    if (p->downtime_ms >= 0) {
        yyjson_mut_obj_add_int(doc, o, "downtimeMs", p->downtime_ms);
    }
    return wire_json_write(doc);
}
