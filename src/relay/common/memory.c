#include "relay/common/memory.h"

#include <stdatomic.h>

#include "base/str.h"
#include "relay/protocol/protocol.h"

enum { PAGE = 4096, BLOCK_LEAST = 4 * PAGE, BLOCKS_PER_SHARE = 4 };

struct relay_memory {
    atomic_uint_fast64_t ceiling;
    atomic_size_t streams;
};

uint32_t relay_memory_share_of(uint64_t ceiling, size_t streams)
{
    uint64_t share = ceiling / 2 / (streams > 0 ? streams : 1);

    if (share < RELAY_MEMORY_SHARE_LEAST) {
        return RELAY_MEMORY_SHARE_LEAST;
    }
    return share < PROTOCOL_WINDOW_CEILING ? (uint32_t)share : PROTOCOL_WINDOW_CEILING;
}

uint32_t relay_memory_block_of(uint32_t share)
{
    uint32_t block = share / BLOCKS_PER_SHARE / PAGE * PAGE;

    if (block < BLOCK_LEAST) {
        return BLOCK_LEAST;
    }
    return block < PROTOCOL_BLOCK ? block : PROTOCOL_BLOCK;
}

struct relay_memory *relay_memory_new(uint64_t ceiling)
{
    struct relay_memory *m = ferry_xcalloc(1, sizeof(*m));

    atomic_init(&m->ceiling, ceiling);
    return m;
}

void relay_memory_free(struct relay_memory *m)
{
    free(m);
}

void relay_memory_set(struct relay_memory *m, uint64_t ceiling)
{
    atomic_store(&m->ceiling, ceiling);
}

void relay_memory_join(struct relay_memory *m)
{
    atomic_fetch_add(&m->streams, 1);
}

void relay_memory_leave(struct relay_memory *m)
{
    atomic_fetch_sub(&m->streams, 1);
}

uint32_t relay_memory_share(const struct relay_memory *m)
{
    return relay_memory_share_of(atomic_load_explicit(&m->ceiling, memory_order_relaxed),
                                 atomic_load_explicit(&m->streams, memory_order_relaxed));
}
