#include "relay/common/path.h"

#include "base/clock.h"

static bool answer_due(const struct relay_path_sample *s)
{
    bool idle = s->unacked == 0 && !s->queued;

    return s->unacked > 0 || s->probes > 0 || idle;
}

bool relay_path_dead(struct relay_path *p, const struct relay_path_sample *s, int64_t limit_ns)
{
    bool heard = p->looked_ns == 0 || s->quiet_ms * FERRY_NS_PER_MS < s->now_ns - p->looked_ns;

    if (heard || !answer_due(s)) {
        p->quiet_since_ns = s->now_ns;
    }
    p->looked_ns = s->now_ns;
    return s->now_ns - p->quiet_since_ns >= limit_ns;
}
