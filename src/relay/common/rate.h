/* A limit on bytes per second, for a whole relay and for each move on it.
 *
 * Whoever has read bytes from a unix socket says so and learns when it may read again. The moves of
 * a relay share its limit evenly, however many streams each has; what one leaves, others
 * use. Small reads (libvirt's control messages, page requests of post-copy) are counted but never
 * have to wait. Any thread; limits may be changed at any time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct relay_rate;

/* `parent`: the relay's, or NULL to make one. It must outlive the children. 0 = no limit. */
struct relay_rate *relay_rate_new(struct relay_rate *parent, uint64_t bytes_per_s);
void relay_rate_free(struct relay_rate *r);
void relay_rate_set(struct relay_rate *r, uint64_t bytes_per_s);
uint64_t relay_rate_get(const struct relay_rate *r);

/* `n` bytes were read for a move at `now`: when to read again; 0 = at once. */
int64_t relay_rate_spend(struct relay_rate *r, size_t n, int64_t now);
