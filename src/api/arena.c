#include "api/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"

enum { FIRST_CHUNK = 1024, ALIGN = alignof(max_align_t) };

struct api_arena_chunk {
    struct api_arena_chunk *next;
    alignas(max_align_t) unsigned char data[];
};

void *api_arena_alloc(struct api_arena *a, size_t count, size_t size)
{
    size_t need;

    if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX / 4) {
        abort(); /* counts come from a document that is in memory already */
    }
    need = (need + ALIGN - 1) / ALIGN * ALIGN;
    need = need ? need : ALIGN;
    if (a->size - a->used < need) {
        size_t chunk = a->size ? a->size * 2 : FIRST_CHUNK;

        chunk = chunk < need ? need : chunk;
        struct api_arena_chunk *c = ferry_xcalloc(1, sizeof(*c) + chunk);
        c->next = a->chunks;
        a->chunks = c;
        a->used = 0;
        a->size = chunk;
    }
    void *p = a->chunks->data + a->used;

    a->used += need;
    return p;
}

void api_arena_done(struct api_arena *a)
{
    while (a->chunks) {
        struct api_arena_chunk *next = a->chunks->next;

        free(a->chunks);
        a->chunks = next;
    }
    *a = (struct api_arena){0};
}
