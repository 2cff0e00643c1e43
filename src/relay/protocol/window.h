/* How many bytes a receiver lets its peer send beyond what it has delivered. Pure; no clock.
 *
 * The window is twice what the path holds: the rate at which bytes are delivered times the shortest
 * round trip seen on this connection. It starts at `start`, grows at most twofold per
 * measurement up to `max`, and comes back slowly when the stream carries less. The shortest round
 * trip, not the last one: a round trip measured under load contains our own queue, and a window
 * that follows it would feed itself. */
#pragma once

#include <stdint.h>

struct window {
    uint32_t start, max, bytes;
    int64_t rtt_ns;  /* shortest of this connection; 0 = not measured */
    double rate;     /* bytes per second, of the last measurement */
    int64_t from_ns; /* of the running measurement; 0 = none */
    uint64_t count;  /* bytes delivered in it */
    int64_t low_ns;  /* since when half the window would do; 0 = it would not */
};

void window_init(struct window *w, uint32_t start, uint32_t max);
/* A new connection: another path perhaps. */
void window_connected(struct window *w);
void window_rtt(struct window *w, int64_t rtt_ns);
/* `n` bytes were delivered. */
void window_delivered(struct window *w, uint64_t n, int64_t now);
