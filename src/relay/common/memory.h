/* How many bytes the streams of a relay may hold together, and what each may have of that. Any
 * thread.
 *
 * Every stream over ferry/1 holds bytes in both directions: read and not yet acknowledged, received
 * and not yet delivered. The ceiling is shared evenly: when streams come, each one's part becomes
 * smaller. What a stream already holds beyond its part it keeps until it is delivered; it just
 * takes no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RELAY_MEMORY_DEFAULT (UINT64_C(512) << 20)
enum {
    RELAY_MEMORY_LEAST = 1 << 20,       /* of a ceiling */
    RELAY_MEMORY_SHARE_LEAST = 64 << 10 /* of one direction of a stream, whatever the ceiling */
};

/* Pure: bytes for each direction of each of so many streams. */
uint32_t relay_memory_share_of(uint64_t ceiling, size_t streams);
/* Pure: blocks that fit such a share; in whole pages. */
uint32_t relay_memory_block_of(uint32_t share);

struct relay_memory;
struct relay_memory *relay_memory_new(uint64_t ceiling);
void relay_memory_free(struct relay_memory *m);
void relay_memory_set(struct relay_memory *m, uint64_t ceiling);

void relay_memory_join(struct relay_memory *m);
void relay_memory_leave(struct relay_memory *m);
/* Cheap: may be asked all the time. */
uint32_t relay_memory_share(const struct relay_memory *m);
