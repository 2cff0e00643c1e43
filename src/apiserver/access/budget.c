#include "apiserver/access/budget.h"

enum { MILLI = 1000 };

/* docs/contracts/identity.md tells why these: a drain of a hundred guests takes a tenth of them. */
static const struct budget_limit limits[BUDGET_KINDS] = {
    [BUDGET_EVENTS] = {.per_s = 5, .burst = 2000},
    [BUDGET_EVENT_BYTES] = {.per_s = 8 << 10, .burst = 4 << 20},
    [BUDGET_WRITES] = {.per_s = 500, .burst = 5000},
    [BUDGET_BYTES] = {.per_s = 2 << 20, .burst = 16 << 20},
};

const struct budget_limit *budget_limits(void)
{
    return limits;
}

static int64_t level_at(const struct budget_bucket *b, const struct budget_limit *limit,
                        int64_t now_ms)
{
    /* A clock that goes back drains nothing. */
    int64_t passed_ms = now_ms > b->seen_ms ? now_ms - b->seen_ms : 0;
    int64_t full_ms = b->level / limit->per_s + 1;

    return passed_ms >= full_ms ? 0 : b->level - passed_ms * limit->per_s;
}

int64_t budget_wait_ms(const struct budget_bucket *b, const struct budget_limit *limit,
                       int64_t cost, int64_t now_ms)
{
    int64_t level = level_at(b, limit, now_ms);
    int64_t room = limit->burst - (cost < limit->burst ? cost : limit->burst);
    int64_t over = level - room * MILLI;

    return over <= 0 ? 0 : (over + limit->per_s - 1) / limit->per_s;
}

void budget_take(struct budget_bucket *b, const struct budget_limit *limit, int64_t cost,
                 int64_t now_ms)
{
    b->level = level_at(b, limit, now_ms) + cost * MILLI;
    b->seen_ms = now_ms;
}

int64_t budget_write(struct budget *b, bool is_event, int64_t bytes, int64_t now_ms)
{
    const int64_t costs[BUDGET_KINDS] = {[BUDGET_EVENTS] = is_event ? 1 : 0,
                                         [BUDGET_EVENT_BYTES] = is_event ? bytes : 0,
                                         [BUDGET_WRITES] = is_event ? 0 : 1,
                                         [BUDGET_BYTES] = is_event ? 0 : bytes};
    int64_t longest = 0;

    for (int i = 0; i < BUDGET_KINDS; i++) {
        int64_t wait = costs[i] ? budget_wait_ms(&b->buckets[i], &limits[i], costs[i], now_ms) : 0;

        longest = wait > longest ? wait : longest;
    }
    for (int i = 0; i < BUDGET_KINDS && longest == 0; i++) {
        budget_take(&b->buckets[i], &limits[i], costs[i], now_ms);
    }
    return longest;
}
