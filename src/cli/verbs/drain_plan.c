#include "cli/verbs/drain_plan.h"

#include <stdio.h>

#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "cli/verbs/preflight.h"
#include "cli/views/outcome.h"

/* The move of `v` that is under way, else its latest, or NULL. */
static const struct api_migration *move_of(const struct api_vmi *v, struct api_object *const *moves,
                                           size_t n)
{
    const struct api_migration *last = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct api_migration *m = &moves[i]->u.migration;

        if (!ferry_streq(m->vmi_name, v->meta.name) ||
            !ferry_streq(m->meta.namespace_, v->meta.namespace_)) {
            continue;
        }
        if (!wire_migration_is_over(m)) {
            return m;
        }
        if (!last || m->meta.created_ms >= last->meta.created_ms) {
            last = m;
        }
    }
    return last;
}

/* Why it is still there although it was to move. */
static void put_last(const struct api_migration *last, const struct api_vmi *v,
                     struct drain_item *item)
{
    enum outcome outcome = last ? outcome_of(last, false, v) : OUTCOME_SUCCEEDED;

    if (outcome == OUTCOME_FAILED) {
        snprintf(item->why, sizeof(item->why), "its last move failed: %s", outcome_reason(last, v));
    } else if (outcome == OUTCOME_CANCELLED) {
        snprintf(item->why, sizeof(item->why), "its last move was cancelled");
    }
}

size_t drain_plan(const char *node, struct api_object *const *vmis, size_t n_vmis,
                  struct api_object *const *moves, size_t n_moves, struct api_object *const *nodes,
                  size_t n_nodes, struct drain_item *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < n_vmis; i++) {
        const struct api_vmi *v = &vmis[i]->u.vmi;
        struct ferry_error why = {0};

        if (!ferry_streq(v->node_name, node) || wire_vmi_is_over(v)) {
            continue;
        }
        struct drain_item *item = &ret[n++];
        *item = (struct drain_item){.vmi = vmis[i], .what = DRAIN_MOVES};
        const struct api_migration *move = move_of(v, moves, n_moves);
        if (move && !wire_migration_is_over(move)) {
            item->what = DRAIN_MOVING;
        } else if (preflight_check(v, nodes, n_nodes, NULL, &why) < 0) {
            item->what = DRAIN_STAYS;
            snprintf(item->why, sizeof(item->why), "%.*s", (int)sizeof(item->why) - 1, why.msg);
        } else {
            put_last(move, v, item);
        }
    }
    return n;
}
