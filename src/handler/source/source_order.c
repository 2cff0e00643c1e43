#include "handler/source/source_order.h"

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"

enum source_order source_order_of(const struct api_vmi *vmi, const char *node,
                                  const struct api_pod *pod, const struct api_migration *migration,
                                  const char **ret_why)
{
    const struct api_migration_state *m = &vmi->migration;
    bool between = ferry_streq(vmi->node_name, node) && ferry_streq(m->source_node, node) &&
                   !ferry_str_empty(m->target_node) && !ferry_streq(m->target_node, node);

    *ret_why = NULL;
    if (between && !pod) {
        return SOURCE_ORDER_AWAITED;
    }
    const struct {
        bool holds;
        const char *why_not;
    } rows[] = {
        {between, "the move does not lead from this node to another"},
        {pod && ferry_streq(wire_pod_vmi(pod), vmi->meta.uid), "the target pod is not this VMI's"},
        {pod && ferry_streq(pod->node_name, m->target_node),
         "the target pod is not on the target node"},
        {pod && !ferry_str_empty(m->uid) &&
             ferry_streq(api_map_get(&pod->meta.labels, LABEL_MIGRATION_JOB_UID), m->uid),
         "the target pod was not made for this move"},
        {migration && ferry_streq(migration->meta.uid, m->uid), "there is no migration of its uid"},
        {migration && ferry_streq(migration->vmi_name, vmi->meta.name),
         "its migration is about another VMI"},
        {migration && !wire_migration_is_over(migration), "its migration is over"},
    };
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        if (!rows[i].holds) {
            *ret_why = rows[i].why_not;
            return SOURCE_ORDER_NONE;
        }
    }
    return SOURCE_ORDER_GIVEN;
}
