#include "launcher/strategy/strategy.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/count.h"
#include "launcher/strategy/strategy_priv.h"

static const char *const action_names[] = {
    "keep",  "set-downtime", "limit-writes", "set-switchover-bandwidth", "post-copy",
    "pause", "force",        "abort-stuck",  "abort-not-converging"};
static_assert(FERRY_COUNT(action_names) == STRATEGY_ACTION_COUNT, "names");

const char *strategy_action_name(enum strategy_action action)
{
    return action_names[action];
}

void strategy_act(struct strategy_decision *d, enum strategy_action action, const char *fmt, ...)
{
    va_list ap;

    d->action = action;
    va_start(ap, fmt);
    vsnprintf(d->why, sizeof(d->why), fmt, ap);
    va_end(ap);
}

void strategy_decide(const struct strategy_input *in, struct strategy_memory *memory,
                     struct strategy_decision *ret)
{
    *ret = (struct strategy_decision){.action = STRATEGY_KEEP};
    if (in->policy->strategy == WIRE_STRATEGY_KUBEVIRT) {
        strategy_kubevirt_decide(in, memory, ret);
    } else {
        strategy_ferry_decide(in, memory, ret);
        strategy_limit_decide(in, memory, ret);
        strategy_switchover_decide(in, memory, ret);
    }
    memory->started = true;
    memory->last = ret->action;
}
