#include "api/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { FIRST_CHUNK = 512, ALIGN = alignof(int64_t) };

struct api_arena_chunk {
    struct api_arena_chunk *next;
    alignas(int64_t) unsigned char data[];
};

void api_arena_init(struct api_arena *a, void *memory, size_t size)
{
    *a = (struct api_arena){.at = memory, .end = (unsigned char *)memory + size};
}

static void add_chunk(struct api_arena *a, size_t need)
{
    size_t size = a->next ? a->next : FIRST_CHUNK;

    a->next = size * 2;
    size = size < need ? need : size;
    struct api_arena_chunk *c = malloc(sizeof(*c) + size);
    if (!c) {
        abort(); /* as in base/str.h */
    }
    c->next = a->chunks;
    a->chunks = c;
    a->at = c->data;
    a->end = c->data + size;
}

void *api_arena_alloc(struct api_arena *a, size_t count, size_t size)
{
    size_t need;

    if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX / 4) {
        abort(); /* counts come from a document that is in memory already */
    }
    need = (need + ALIGN - 1) / ALIGN * ALIGN;
    need = need ? need : ALIGN;
    if (!a->at || (size_t)(a->end - a->at) < need) {
        add_chunk(a, need);
    }
    void *p = a->at;

    a->at += need;
    return memset(p, 0, need);
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
