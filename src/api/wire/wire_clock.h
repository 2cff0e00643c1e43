/* How the clock of a controller's host was set while it ran, for its successor on the same boot:
 * the annotation ferry.io/clock-steps of its Lease. Pure. */
#pragma once

#include "api/wire/wire_json.h"

enum { WIRE_CLOCK_STEPS = 8, WIRE_BOOT = 64 };

struct wire_clock_step {
    int64_t before_ms; /* what the wall clock showed when it was set */
    int64_t by_ms;
};
struct wire_clock {
    char boot[WIRE_BOOT]; /* whose clock it is; "" = not known */
    struct wire_clock_step steps[WIRE_CLOCK_STEPS];
    size_t n;
};

/* False when there is nothing to be read. Steps that make no sense, and those beyond the first
 * eight, are passed over. */
bool wire_clock_read(const char *text, struct wire_clock *ret);
char *wire_clock_text(const struct wire_clock *c); /* the caller's; NULL when `boot` is no text */
