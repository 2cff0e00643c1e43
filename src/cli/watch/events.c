#include "cli/watch/events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/object.h"
#include "cli/views/progress.h"

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

static void sort(struct kube_list *list)
{
    if (list->n > 1) {
        qsort(list->items, list->n, sizeof(struct api_object *), oldest_first);
    }
}

int events_list(struct session *s, const char *ns, struct kube_list *ret, struct ferry_error *err)
{
    struct kube_ref ref = {.resource = api_resource_find("", "v1", "events"), .ns = ns};

    if (kube_client_list(s->client, ref, NULL, ret, err) < 0) {
        return session_explain(err);
    }
    sort(ret);
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

static void put_when(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    char age[PROGRESS_TEXT];

    ferry_buf_puts(out, progress_age(context->now_ms - events_time_ms(o), age));
}

static void put_object(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    const char *name = api_json_str(o->root, "/involvedObject/name");

    (void)context;
    ferry_buf_printf(out, "%s/%s", short_kind(api_json_str(o->root, "/involvedObject/kind")),
                     name ? name : "?");
}

static void put_times(const struct api_object *o, const struct listing_context *context,
                      struct ferry_buf *out)
{
    int64_t count = api_json_int(o->root, "/count", 1);

    (void)context;
    if (count > 1) {
        ferry_buf_printf(out, "%" PRId64 "x", count);
    }
}

static bool about(const struct api_object *event, const char *name)
{
    return ferry_streq(api_json_str(event->root, "/involvedObject/name"), name);
}

static int in_order(struct session *s, const char *ns, struct kube_list *list,
                    struct kube_list *beside, struct ferry_error *err)
{
    (void)s;
    (void)ns;
    (void)beside;
    (void)err;
    sort(list);
    return 0;
}

static const struct listing_column columns[] = {
    {"AGE", put_when},
    {"TYPE", .pointer = "/type"},
    {"REASON", .pointer = "/reason"},
    {"OBJECT", put_object},
    {"TIMES", put_times},
    {"MESSAGE", .pointer = "/message"},
    {0},
};

const struct listing events_listing = {
    .name = "ferry events",
    .summary = "Lists events, the oldest first: all, or those about one move, virtual machine,\n"
               "pod or node.",
    .kind = API_KIND_EVENT,
    .namespaced = true,
    .columns = columns,
    .what = "events",
    .gather = in_order,
    .about = about,
};
