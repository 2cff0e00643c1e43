#include "control/migration/cpu_fit.h"

#include <stdlib.h>

#include "api/machine_type.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"

enum { NODES_TOLD = 3 };

static bool is_about_machine(const char *key)
{
    return ferry_str_starts(key, LABEL_MACHINE_TYPE);
}

static bool is_about_cpu(const char *key)
{
    return ferry_str_starts(key, LABEL_CPU_MIGRATION) || ferry_str_starts(key, LABEL_CPU_FEATURE) ||
           ferry_str_starts(key, LABEL_CPU_MODEL) || ferry_str_starts(key, LABEL_CPU_VENDOR);
}

/* Counts what the node lacks of the CPU and the machine; the first of it in `*ret_first`. */
static size_t lacking(const struct api_map *selector, const struct api_map *labels,
                      const char **ret_first)
{
    size_t n = 0;

    for (size_t i = 0; i < selector->n; i++) {
        const struct api_pair *s = &selector->items[i];

        if ((is_about_cpu(s->key) || is_about_machine(s->key)) &&
            !ferry_streq(api_map_get(labels, s->key), s->value)) {
            *ret_first = n++ ? *ret_first : s->key;
        }
    }
    return n;
}

char *cpu_fit_trouble(const struct api_pod *target, const struct api_object *const *nodes, size_t n,
                      const char *source_node, enum wire_lack *ret)
{
    static const char *const says[] = {
        [WIRE_LACK_NOTHING] = "",
        [WIRE_LACK_CPU] = "no other node has its CPU",
        [WIRE_LACK_MACHINE] = "no other node has its machine type",
    };
    ferry_cleanup_buf struct ferry_buf b = {0};
    size_t told = 0;

    *ret = WIRE_LACK_NOTHING;

    for (size_t i = 0; i < n; i++) {
        const struct api_node *node = &nodes[i]->u.node;
        const char *first = NULL;

        if (ferry_streq(node->meta.name, source_node)) {
            continue;
        }
        size_t lacks = lacking(&target->node_selector, &node->meta.labels, &first);
        if (lacks == 0) {
            *ret = WIRE_LACK_NOTHING;
            return NULL;
        }
        if (told == 0) {
            *ret = is_about_machine(first) ? WIRE_LACK_MACHINE : WIRE_LACK_CPU;
        }
        if (told++ < NODES_TOLD) {
            ferry_buf_printf(&b, "%s%s%s lacks %s", told == 1 ? says[*ret] : "",
                             told == 1 ? ": " : ", ", node->meta.name, first);
            if (lacks > 1) {
                ferry_buf_printf(&b, " and %zu more", lacks - 1);
            }
        }
    }
    if (told > NODES_TOLD) {
        ferry_buf_printf(&b, ", and so on for %zu more", told - NODES_TOLD);
    }
    return told ? ferry_buf_take(&b) : NULL;
}
