#include "control/pod/accelerator_pick.h"

#include "api/wire/wire_keys.h"
#include "base/str.h"

static bool counts(const struct api_object *node)
{
    return !node->u.node.unschedulable &&
           ferry_streq(api_map_get(&node->meta->labels, LABEL_SCHEDULABLE), "true");
}

enum wire_accelerator accelerator_pick(const struct api_kubevirt *site,
                                       const struct api_object *const *nodes, size_t n)
{
    if (site && site->has_use_emulation) {
        return site->use_emulation ? ACCELERATOR_TCG : ACCELERATOR_KVM;
    }
    for (size_t i = 0; i < n; i++) {
        if (counts(nodes[i]) && wire_accelerator_is_offered(&nodes[i]->u.node)) {
            return ACCELERATOR_KVM;
        }
    }
    return ACCELERATOR_TCG;
}
