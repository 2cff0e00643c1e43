#include "control/migration/pending_reason.h"

#include "api/wire/wire_error_old.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"

enum wire_reason pending_reason(const char *message)
{
    switch (wire_error_old_unschedulable(message)) {
    case WIRE_UNSCHEDULABLE_VOLUME:
        return REASON_VOLUME_NOT_READY;
    case WIRE_UNSCHEDULABLE_NEVER:
        return REASON_NEVER_SCHEDULABLE;
    case WIRE_UNSCHEDULABLE_FOR_NOW:
        break;
    }
    return REASON_UNSCHEDULABLE;
}

static bool is_of_cpu(const struct api_pair *wanted)
{
    return ferry_str_starts(wanted->key, LABEL_CPU_MIGRATION) ||
           ferry_str_starts(wanted->key, LABEL_CPU_FEATURE);
}

static bool has_cpu(const struct api_pod *pod, const struct api_map *labels)
{
    for (size_t i = 0; i < pod->node_selector.n; i++) {
        const struct api_pair *wanted = &pod->node_selector.items[i];

        if (is_of_cpu(wanted) && !ferry_streq(api_map_get(labels, wanted->key), wanted->value)) {
            return false;
        }
    }
    return true;
}

bool pending_lacks_cpu(const struct api_pod *pod, const struct api_object *const *nodes, size_t n,
                       const char *but)
{
    bool asks = false;

    for (size_t i = 0; i < pod->node_selector.n; i++) {
        asks = asks || is_of_cpu(&pod->node_selector.items[i]);
    }
    for (size_t i = 0; asks && i < n; i++) {
        if (!ferry_streq(nodes[i]->meta->name, but) && has_cpu(pod, &nodes[i]->meta->labels)) {
            return false;
        }
    }
    return asks;
}
