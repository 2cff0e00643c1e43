#include "handler/move/node_role.h"

#include "api/wire/wire_keys.h"
#include "base/str.h"

enum node_role node_role_of(const struct api_vmi *vmi, const char *node)
{
    const struct api_migration_state *m = &vmi->migration;
    bool owner = ferry_streq(vmi->node_name, node);

    /* The label outlasts the move: it goes when the target has cleaned up. */
    if (m->present && ferry_streq(m->target_node, node) &&
        ferry_streq(api_map_get(&vmi->meta.labels, LABEL_TARGET_NODE_NAME), node)) {
        return NODE_ROLE_TARGET;
    }
    /* Still the source when the target owns the guest already: until the move is completed this
     * side's hypervisor may be confirming, and its last figures are wanted. */
    if (m->present && !m->completed && ferry_streq(m->source_node, node) &&
        (owner || ferry_streq(vmi->node_name, m->target_node))) {
        return NODE_ROLE_SOURCE;
    }
    return owner ? NODE_ROLE_OWNER : NODE_ROLE_NONE;
}

const char *node_role_name(enum node_role role)
{
    static const char *const names[] = {"none", "owner", "source", "target"};

    return names[role];
}
