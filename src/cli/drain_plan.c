#include "cli/drain_plan.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/preflight.h"

static bool is_final(const char *phase)
{
    return ferry_streq(phase, "Succeeded") || ferry_streq(phase, "Failed");
}

static bool is_moving(const struct api_vmi *v, struct api_object *const *moves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_migration *m = &moves[i]->u.migration;

        if (ferry_streq(m->vmi_name, v->meta.name) &&
            ferry_streq(m->meta.namespace_, v->meta.namespace_) && !is_final(m->phase)) {
            return true;
        }
    }
    return false;
}

size_t drain_plan(const char *node, struct api_object *const *vmis, size_t n_vmis,
                  struct api_object *const *moves, size_t n_moves, struct api_object *const *nodes,
                  size_t n_nodes, struct drain_item *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < n_vmis; i++) {
        const struct api_vmi *v = &vmis[i]->u.vmi;
        struct ferry_error why = {0};

        if (!ferry_streq(v->node_name, node) || is_final(v->phase)) {
            continue;
        }
        struct drain_item *item = &ret[n++];
        *item = (struct drain_item){.vmi = vmis[i], .what = DRAIN_MOVES};
        if (is_moving(v, moves, n_moves)) {
            item->what = DRAIN_MOVING;
        } else if (preflight_check(v, nodes, n_nodes, NULL, &why) < 0) {
            item->what = DRAIN_STAYS;
            snprintf(item->why, sizeof(item->why), "%.255s", why.msg);
        }
    }
    return n;
}
