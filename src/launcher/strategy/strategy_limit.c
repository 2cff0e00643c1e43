/* Theory of operation. Where a guest's writes can be limited, that is what makes rounds shrink: a
 * vCPU that may write L bytes per second leaves at most L of work for each second that a round
 * takes. So a round that did not shrink much is answered by a limit of half of what the path
 * carries, shared among the vCPUs, and each further one by half of the limit before; the guest is
 * slowed down no more than it takes. While there is a step left nothing is given up for want of
 * convergence; at the last one the other rules judge (strategy_ferry.c). */
#include "launcher/strategy/strategy_priv.h"

#define MIB (INT64_C(1) << 20)
#define SHRINKS_WELL 0.7

enum { LEAST_MIB = 1, ROUND_KNOWN = 2 }; /* the first round sends everything */

static bool may_limit(const struct strategy_input *in, const struct strategy_limit *l)
{
    return in->limited_vcpus > 0 && in->policy->allow_auto_converge && !l->refused &&
           l->mib_per_s != LEAST_MIB && in->mode == MODE_PRE_COPY && !in->aborting &&
           !in->path_away && in->sample.present;
}

/* What the other rules want that a limit may spare. */
static bool may_be_spared(enum strategy_action action)
{
    return action == STRATEGY_KEEP || action == STRATEGY_POST_COPY || action == STRATEGY_FORCE ||
           action == STRATEGY_ABORT_NOT_CONVERGING;
}

static void lower(const struct strategy_input *in, struct strategy_limit *l, int64_t wire,
                  struct strategy_decision *ret)
{
    int64_t next = l->mib_per_s ? l->mib_per_s / 2 : wire / 2 / in->limited_vcpus / MIB;

    next = next > LEAST_MIB ? next : LEAST_MIB;
    *ret = (struct strategy_decision){0};
    strategy_act(
        ret, STRATEGY_LIMIT_WRITES,
        "rounds do not shrink enough: %lld MiB remain, %lld MiB/s sent; each of %lld vCPUs "
        "may write %lld MiB/s from now on",
        (long long)(in->sample.remaining_bytes / MIB), (long long)(wire / MIB),
        (long long)in->limited_vcpus, (long long)next);
    ret->bytes_per_s = next * MIB;
    l->mib_per_s = next;
}

void strategy_limit_decide(const struct strategy_input *in, struct strategy_memory *memory,
                           struct strategy_decision *ret)
{
    struct strategy_limit *l = &memory->limit;
    const struct launcher_sample *s = &in->sample;
    int64_t wire = memory->ferry.bandwidth ? memory->ferry.bandwidth : s->bytes_per_s;
    int64_t before = l->remaining, allowed = strategy_allowed_ms(in);

    if (!memory->started) {
        *l = (struct strategy_limit){0};
    }
    l->refused = l->refused || (in->last_failed && memory->last == STRATEGY_LIMIT_WRITES);
    if (s->iteration <= l->iteration) {
        return;
    }
    bool known = l->iteration >= ROUND_KNOWN && before > 0;
    l->iteration = s->iteration;
    l->remaining = s->remaining_bytes;
    if (!known || !may_limit(in, l) || !may_be_spared(ret->action) || wire <= 0 ||
        (allowed && memory->ferry.now_ms > allowed) ||
        (double)s->remaining_bytes < (double)before * SHRINKS_WELL ||
        s->remaining_bytes <= wire * in->policy->max_downtime_ms / 1000) {
        return;
    }
    lower(in, l, wire, ret);
    memory->ferry.hopeless = 0;
}
