#include "control/loops/node_decide.h"

#include "api/wire/wire_keys.h"
#include "base/str.h"

void node_decide(const struct api_object *node, int64_t silent_ms, int64_t now_ms, struct plan *ret)
{
    const struct api_condition *ready =
        api_condition_find(&node->u.node.conditions, CONDITION_READY);
    struct plan_condition unknown = {.type = CONDITION_READY,
                                     .status = "Unknown",
                                     .reason = "NodeStatusUnknown",
                                     .message = "The handler of the node stopped reporting."};

    *ret = (struct plan){.rule = "alive"};
    if (silent_ms < NODE_SILENCE_MS) {
        plan_again(ret, NODE_SILENCE_MS - silent_ms);
        return;
    }
    ret->rule = "silent";
    if (ready && ferry_streq(ready->status, "Unknown")) {
        return;
    }
    struct api_patch *p = api_patch_new();
    plan_guard(p, node);
    plan_set_condition(p, node, &node->u.node.conditions, &unknown, now_ms);
    plan_patch_status(ret, node, p);
    plan_event(ret, node, KUBE_EVENT_WARNING, "NodeNotReady",
               "No heartbeat for %d s; status is unknown", NODE_SILENCE_MS / 1000);
}
