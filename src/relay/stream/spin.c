#include "relay/stream/spin.h"

#include "base/clock.h"

#define LOOK (50 * 1000)
#define LATE (100 * 1000) /* no yield takes this long on a CPU that nobody else wants */
#define REST (1 * FERRY_NS_PER_S)
enum { SMALL = 4096 };

int64_t relay_spin_until(const struct relay_spin *l, size_t moved, int64_t now)
{
    return moved > 0 && moved <= SMALL && now >= l->rest_ns ? now + LOOK : now;
}

void relay_spin_over(struct relay_spin *l, int64_t until, int64_t now)
{
    if (now - until >= LATE) {
        l->rest_ns = now + REST;
    }
}
