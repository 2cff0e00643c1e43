/* Memory that lives and dies with one object: allocate, never free, drop all at once. */
#pragma once

#include <stddef.h>

struct api_arena_chunk;
struct api_arena {
    struct api_arena_chunk *chunks;
    unsigned char *at, *end; /* what is free in the newest one */
    size_t next;             /* size of the next chunk */
};

/* Begins with `size` bytes of the caller's, aligned for pointers and numbers, which must live as
 * long. */
void api_arena_init(struct api_arena *a, void *memory, size_t size);
/* Zeroed, aligned for pointers and 64-bit numbers. */
void *api_arena_alloc(struct api_arena *a, size_t count, size_t size);
void api_arena_done(struct api_arena *a);
