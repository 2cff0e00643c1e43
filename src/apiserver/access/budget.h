/* How much a caller may write: buckets that fill with what it does and drain with time. Pure: the
 * clock is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct budget_limit {
    int64_t per_s; /* for good */
    int64_t burst; /* at once, after a time of silence */
};

struct budget_bucket {
    int64_t level;   /* what is in it, in thousandths; zeroed = empty */
    int64_t seen_ms; /* when it was looked at last */
};

/* What one node may write, of each kind, by number and by bytes. */
enum budget_kind { BUDGET_EVENTS, BUDGET_EVENT_BYTES, BUDGET_WRITES, BUDGET_BYTES, BUDGET_KINDS };

struct budget {
    struct budget_bucket buckets[BUDGET_KINDS];
};

const struct budget_limit *budget_limits(void); /* BUDGET_KINDS of them */

/* How long until `cost` fits, in milliseconds; 0 = now. One that is larger than the burst fits into
 * an empty bucket. Takes nothing. */
int64_t budget_wait_ms(const struct budget_bucket *b, const struct budget_limit *limit,
                       int64_t cost, int64_t now_ms);
void budget_take(struct budget_bucket *b, const struct budget_limit *limit, int64_t cost,
                 int64_t now_ms);

/* One write of `bytes`, an event or something else: 0 when it may be, and then it is counted; else
 * how long to wait. */
int64_t budget_write(struct budget *b, bool is_event, int64_t bytes, int64_t now_ms);
