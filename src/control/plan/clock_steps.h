/* How long ago something was, although the clock was set in between. Pure.
 *
 * Objects carry wall-clock times, and deadlines are counted from them. When somebody sets the
 * clock, an hour forward for one, every wait would be over at once. So the steps that this process
 * has seen, by comparing the wall clock with the monotonic one, are left out of what has passed. It
 * leaves them to its successor as a text; one of another host or boot has another clock, and does
 * not take them. A step that nobody has seen, while no controller ran, counts as time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire/wire_clock.h"

enum {
    CLOCK_STEPS_MAX = WIRE_CLOCK_STEPS, /* older ones are forgotten */
    CLOCK_STEP_MS = 2000,               /* less is a clock that is being corrected */
};

struct clock_steps {
    int64_t wall_ms, mono_ms; /* at the last observation; 0 = there was none */
    struct wire_clock_step steps[CLOCK_STEPS_MAX];
    size_t n_steps;
};

/* To be called often, with both clocks as they are. True when the clock was set since. */
bool clock_steps_observe(struct clock_steps *s, int64_t wall_ms, int64_t mono_ms);

/* Milliseconds from `since_ms` to `now_ms`, both wall-clock times, without the steps between; never
 * below 0. */
int64_t clock_steps_elapsed(const struct clock_steps *s, int64_t since_ms, int64_t now_ms);

/* The steps for a successor; `boot` says whose clock it is. Owned by the caller. */
char *clock_steps_text(const struct clock_steps *s, const char *boot);
/* Takes over what a predecessor has left, before the first observation; a text of another boot, or
 * one that cannot be read, is nothing. */
void clock_steps_recall(struct clock_steps *s, const char *text, const char *boot);
