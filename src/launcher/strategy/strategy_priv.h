/* Between the files of the strategy. */
#pragma once

#include "launcher/strategy/strategy.h"

void strategy_ferry_decide(const struct strategy_input *in, struct strategy_memory *memory,
                           struct strategy_decision *ret);
void strategy_kubevirt_decide(const struct strategy_input *in, struct strategy_memory *memory,
                              struct strategy_decision *ret);
/* What QEMU shall believe that the path carries; only where nothing else is to be done. */
void strategy_switchover_decide(const struct strategy_input *in, struct strategy_memory *memory,
                                struct strategy_decision *ret);

/* Sets action and reason. */
void strategy_act(struct strategy_decision *d, enum strategy_action action, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Runs after strategy_ferry_decide(), whose decision it may replace. */
void strategy_limit_decide(const struct strategy_input *in, struct strategy_memory *memory,
                           struct strategy_decision *ret);
/* What the policy grants the whole move; 0 = no limit. */
int64_t strategy_allowed_ms(const struct strategy_input *in);
