/* What this relay has seen of the ways to other nodes, kept after the streams that saw it are gone.
 * Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "relay/state/state.h"

struct relay_paths;

struct relay_paths *relay_paths_new(void);
void relay_paths_free(struct relay_paths *p);

/* For another process; `*ret` is the caller's, the names in it are borrowed until the next call
 * here. Returns how many there are. */
size_t relay_paths_save(struct relay_paths *p, struct relay_state_path **ret);
void relay_paths_restore(struct relay_paths *p, const struct relay_state_path *from);

/* A stream to `node` carried so many bytes per second lately, with this round trip (0 = unknown).
 * Rates of streams that have little to say are left out. */
void relay_paths_note(struct relay_paths *p, const char *node, uint64_t bytes_per_s,
                      int64_t rtt_us);
/* The best rate of the last streams and the last round trip; 0 where nothing is known. */
void relay_paths_last(struct relay_paths *p, const char *node, uint64_t *ret_bytes_per_s,
                      int64_t *ret_rtt_us);
