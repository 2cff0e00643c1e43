#include "http/body_budget.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/str.h"

enum {
    STEP = 64 * 1024,
    /* A list of small numbers is the worst of JSON: two bytes become a value of 16 as it is read,
     * one of 24 where it is changed, and a text again. */
    WORK_FACTOR = 24,
    EIGHTHS = 8,
};

struct body_budget {
    uint64_t total;
    atomic_uint_fast64_t used;
};

/* The buffer doubles as it grows. */
size_t body_budget_reading(size_t len)
{
    size_t steps = (len + STEP - 1) / STEP;

    return 2 * steps * STEP;
}

size_t body_budget_working(size_t len)
{
    return WORK_FACTOR * len;
}

bool body_budget_fits(uint64_t total, uint64_t used, size_t want, enum body_rank rank)
{
    static const unsigned eighths[BODY_RANK_COUNT] = {
        [BODY_STRANGER] = 1,
        [BODY_PERSON] = 4,
        [BODY_NODE] = 6,
        [BODY_OPERATOR] = EIGHTHS,
    };
    uint64_t most = total / EIGHTHS * eighths[rank];

    return used <= most && want <= most - used;
}

struct body_budget *body_budget_new(uint64_t total)
{
    struct body_budget *b = ferry_xcalloc(1, sizeof(*b));

    b->total = total;
    return b;
}

void body_budget_free(struct body_budget *b)
{
    free(b);
}

/* `*held` becomes `need` where `want` would fit. */
static bool grow(struct body_budget *b, enum body_rank rank, size_t need, size_t want, size_t *held)
{
    uint_fast64_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

    do {
        if (!body_budget_fits(b->total, used, want - *held, rank)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&b->used, &used, used + need - *held,
                                                    memory_order_relaxed, memory_order_relaxed));
    *held = need;
    return true;
}

bool body_budget_hold(struct body_budget *b, enum body_rank rank, size_t need, size_t *held)
{
    if (need <= *held) {
        atomic_fetch_sub_explicit(&b->used, *held - need, memory_order_relaxed);
        *held = need;
        return true;
    }
    return grow(b, rank, need, need, held);
}

bool body_budget_begin(struct body_budget *b, enum body_rank rank, size_t len, size_t *held)
{
    return grow(b, rank, body_budget_reading(len), body_budget_working(len), held);
}

uint64_t body_budget_used(const struct body_budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed);
}
