/* Whether a stream that has nothing to do looks again for a moment before it sleeps.
 *
 * After small messages the next one, an answer mostly, comes soon: going to sleep and being woken
 * would take longer than it does. Between two looks the CPU is yielded to whoever is to answer.
 * Where others want it, too, they may keep it for milliseconds, and whoever yields is served last:
 * a stream that finds itself late goes to sleep at once for a while. Bulk gains nothing by looking.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct relay_spin {
    int64_t rest_ns; /* others want the CPU: not before this */
};

/* Until when to look, after `moved` bytes since the last wait; `now`: not at all. */
int64_t relay_spin_until(const struct relay_spin *l, size_t moved, int64_t now);
/* Nothing came, and it is `now`. */
void relay_spin_over(struct relay_spin *l, int64_t until, int64_t now);
