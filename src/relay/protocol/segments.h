/* Bytes of one direction of a stream, held in aligned memory until they are released in order.
 *
 * Not a byte ring: bytes are read straight into blocks, a read that may be large starts at a
 * 64-byte boundary (a copy whose destination is a few bytes ahead of its source modulo a page is
 * many times slower on some CPUs), and a table of pieces says which offsets lie where. Blocks that
 * become free are used again last-in first-out, so a small window stays in the cache; blocks
 * are made only when they are needed. Memory is bounded by segments_memory_max() whatever sizes
 * the bytes come in.
 *
 * Not thread-safe; one owner. Pointers handed out stay valid until the bytes they point to are
 * released. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct segments_block;
struct segments_piece;

struct segments {
    uint64_t begin, end; /* offsets of the first byte held and behind the last */
    size_t block_size, max;
    struct segments_block *head, *tail, *spare;
    size_t blocks; /* in use and spare */
    struct segments_piece *pieces;
    size_t first, count, room; /* ring of pieces; room is a power of two */
    uint8_t *reserved;         /* of segments_reserve(), until committed */
};

/* Holds at most `max` bytes, in blocks of `block_size` (a multiple of 4096). Allocates nothing. */
void segments_init(struct segments *s, size_t block_size, size_t max);
/* The first byte will have this offset. Only while nothing was added. */
void segments_begin_at(struct segments *s, uint64_t offset);
void segments_done(struct segments *s);

/* Memory for up to `want` bytes behind `end`: returns how many (at least 1) and where, or 0 when
 * `max` bytes are held or there is no memory. `align`: at a 64-byte boundary. Calling it again
 * without a commit gives the same memory or other memory as good. */
size_t segments_reserve(struct segments *s, size_t want, bool align, uint8_t **ret);
/* The first `n` bytes of the last reservation are now the bytes [end, end + n). */
void segments_commit(struct segments *s, size_t n);

/* The bytes at `offset` that lie side by side: returns how many, 0 at `end`. */
size_t segments_peek(const struct segments *s, uint64_t offset, const uint8_t **ret);
/* From `begin` on; returns the number of entries filled. */
int segments_vec(const struct segments *s, struct iovec *vec, int max);

/* Forgets all bytes below `offset`. */
void segments_release(struct segments *s, uint64_t offset);
/* Gives memory back that holds no bytes. */
void segments_trim(struct segments *s);

size_t segments_memory(const struct segments *s);     /* bytes of block memory in use and spare */
size_t segments_memory_max(const struct segments *s); /* what it can never exceed */
