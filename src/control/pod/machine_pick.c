#include "control/pod/machine_pick.h"

#include <string.h>

#include "api/machine_type.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"

static bool has(const struct api_map *labels, const char *key)
{
    return ferry_streq(api_map_get(labels, key), "true");
}

/* One that is not ready just now counts: it will be back, and guests are to fit it then. */
static bool counts(const struct api_object *node)
{
    const struct api_map *labels = &node->meta->labels;

    if (node->u.node.unschedulable || !has(labels, LABEL_SCHEDULABLE)) {
        return false;
    }
    for (size_t i = 0; i < labels->n; i++) {
        if (ferry_str_starts(labels->items[i].key, LABEL_MACHINE_TYPE)) {
            return true;
        }
    }
    return false;
}

static bool all_have(const char *label, const struct api_object *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (counts(nodes[i]) && !has(&nodes[i]->meta->labels, label)) {
            return false;
        }
    }
    return true;
}

char *machine_pick(const char *asked, const struct api_object *const *nodes, size_t n)
{
    size_t first = 0;
    const char *best = NULL;

    while (first < n && !counts(nodes[first])) {
        first++;
    }
    if (first == n) {
        return NULL;
    }
    if (api_machine_is_pinned(asked)) {
        return ferry_strdup(asked);
    }
    const struct api_map *labels = &nodes[first]->meta->labels;
    for (size_t i = 0; i < labels->n; i++) {
        const char *label = labels->items[i].key;
        const char *type = label + strlen(LABEL_MACHINE_TYPE);

        if (ferry_str_starts(label, LABEL_MACHINE_TYPE) && api_machine_is_of(type, asked) &&
            (!best || api_machine_compare(type, best) > 0) && all_have(label, nodes, n)) {
            best = type;
        }
    }
    return ferry_strdup(best);
}
