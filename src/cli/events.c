#include "cli/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/object.h"
#include "cli/progress.h"
#include "cli/table.h"

int64_t events_time_ms(const struct api_object *event)
{
    const char *when = api_json_str(event->root, "/lastTimestamp");
    int64_t ms = 0;

    return when && api_time_parse(when, &ms, NULL) == 0 ? ms : event->meta->created_ms;
}

static int oldest_first(const void *a, const void *b)
{
    int64_t x = events_time_ms(*(struct api_object *const *)a),
            y = events_time_ms(*(struct api_object *const *)b);

    return x < y ? -1 : x > y;
}

int events_list(struct session *s, const char *ns, struct kube_list *ret, struct ferry_error *err)
{
    struct kube_ref ref = {.resource = api_resource_find("", "v1", "events"), .ns = ns};

    if (kube_client_list(s->client, ref, NULL, ret, err) < 0) {
        return session_explain(err);
    }
    if (ret->n > 1) {
        qsort(ret->items, ret->n, sizeof(struct api_object *), oldest_first);
    }
    return 0;
}

static const char *short_kind(const char *kind)
{
    return ferry_streq(kind, "VirtualMachineInstance")            ? "vm"
           : ferry_streq(kind, "VirtualMachineInstanceMigration") ? "move"
           : ferry_streq(kind, "Pod")                             ? "pod"
           : ferry_streq(kind, "Node")                            ? "node"
           : kind                                                 ? kind
                                                                  : "?";
}

static void put_row(struct table *t, const struct api_object *e, bool with_namespace,
                    int64_t now_ms)
{
    char age[PROGRESS_TEXT], times[PROGRESS_TEXT] = "";
    const char *name = api_json_str(e->root, "/involvedObject/name");
    ferry_cleanup_free char *about = ferry_asprintf(
        "%s/%s", short_kind(api_json_str(e->root, "/involvedObject/kind")), name ? name : "?");
    int64_t count = api_json_int(e->root, "/count", 1);
    const char *cells[TABLE_COLUMNS];
    size_t n = 0;

    if (count > 1) {
        snprintf(times, sizeof(times), "%" PRId64 "x", count);
    }
    if (with_namespace) {
        cells[n++] = e->meta->namespace_;
    }
    cells[n++] = progress_age(now_ms - events_time_ms(e), age);
    cells[n++] = api_json_str(e->root, "/type");
    cells[n++] = api_json_str(e->root, "/reason");
    cells[n++] = about;
    cells[n++] = times;
    cells[n++] = api_json_str(e->root, "/message");
    table_row(t, cells);
}

bool events_render(const struct kube_list *list, bool (*keep)(const struct api_object *, void *),
                   void *ctx, bool with_namespace, int64_t now_ms, struct ferry_buf *out)
{
    const char *const headers[] = {"NAMESPACE", "AGE",   "TYPE",    "REASON",
                                   "OBJECT",    "TIMES", "MESSAGE", NULL};
    table_cleanup struct table t;

    table_init(&t, headers + (with_namespace ? 0 : 1));
    for (size_t i = 0; i < list->n; i++) {
        if (!keep || keep(list->items[i], ctx)) {
            put_row(&t, list->items[i], with_namespace, now_ms);
        }
    }
    if (t.n_rows > 1) {
        table_render(&t, out);
    }
    return t.n_rows > 1;
}
