/* Memory that lives and dies with one object: allocate, never free, drop all at once. */
#pragma once

#include <stddef.h>

struct api_arena_chunk;
struct api_arena {
    struct api_arena_chunk *chunks;
    size_t used, size; /* of the first chunk */
};

/* Zeroed, aligned for any type. */
void *api_arena_alloc(struct api_arena *a, size_t count, size_t size);
void api_arena_done(struct api_arena *a);
