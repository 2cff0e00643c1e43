/* Values as bytes, for a relay that takes over from another. Pure.
 *
 * Written in a fixed order without names: writer and reader are the same program or one that knows
 * the version. A writer without memory only counts, so a state is written twice: once to learn its
 * size, once into memory of that size. A reader never reads behind the end; the first thing wrong
 * is kept in `bad`, and from then on it gives zeros. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack {
    uint8_t *data; /* NULL: count only */
    size_t room, len;
};

void pack_u8(struct pack *k, uint8_t v);
void pack_bool(struct pack *k, bool v);
void pack_u32(struct pack *k, uint32_t v);
void pack_u64(struct pack *k, uint64_t v);
void pack_i64(struct pack *k, int64_t v);
void pack_bytes(struct pack *k, const void *p, size_t n); /* without their number */
void pack_text(struct pack *k, const char *s);            /* or NULL */

struct unpack {
    const uint8_t *data;
    size_t len, pos;
    const char *bad; /* what is wrong, or NULL */
};

void unpack_fail(struct unpack *u, const char *what);
uint8_t unpack_u8(struct unpack *u);
bool unpack_bool(struct unpack *u); /* 0 or 1, nothing else */
uint32_t unpack_u32(struct unpack *u);
uint64_t unpack_u64(struct unpack *u);
int64_t unpack_i64(struct unpack *u);
const uint8_t *unpack_bytes(struct unpack *u, size_t n); /* NULL when there are not so many */
/* A copy, or NULL if NULL was written or it has more than `max` bytes (then it is wrong). */
char *unpack_text(struct unpack *u, size_t max);
/* The same into `buf` of `size` bytes; NULL becomes "". */
void unpack_text_into(struct unpack *u, char *buf, size_t size);
