/* How long ago something was, although the clock was set in between. Pure.
 *
 * Objects carry wall-clock times, and deadlines are counted from them. When somebody sets the
 * clock, an hour forward for one, every wait would be over at once. So the steps that this process
 * has seen, by comparing the wall clock with the monotonic one, are left out of what has passed.
 * One that was restarted knows of none. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    STEADY_STEPS = 8,      /* older ones are forgotten */
    STEADY_STEP_MS = 2000, /* less is a clock that is being corrected */
};

struct steady_step {
    int64_t before_ms; /* what the wall clock showed when it was set */
    int64_t by_ms;
};

struct steady {
    int64_t wall_ms, mono_ms; /* at the last look; 0 = there was none */
    struct steady_step steps[STEADY_STEPS];
    size_t n_steps;
};

/* To be called often, with both clocks as they are. */
void steady_look(struct steady *s, int64_t wall_ms, int64_t mono_ms);

/* Milliseconds from `since_ms` to `now_ms`, both wall-clock times, without the steps between; never
 * below 0. */
int64_t steady_elapsed(const struct steady *s, int64_t since_ms, int64_t now_ms);
