#include "relay/path.h"

#include "base/clock.h"

bool relay_path_waiting(const struct relay_path_sample *s)
{
    return s->unacked > 0 || s->probes > 0;
}

bool relay_path_dead(struct relay_path *p, const struct relay_path_sample *s, int64_t limit_ns)
{
    bool heard = p->looked_ns == 0 || s->last_ack_ms * FERRY_NS_PER_MS < s->now_ns - p->looked_ns;

    if (heard || !relay_path_waiting(s)) {
        p->quiet_since_ns = s->now_ns;
    }
    p->looked_ns = s->now_ns;
    return s->now_ns - p->quiet_since_ns >= limit_ns;
}
