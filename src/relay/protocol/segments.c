/* Theory of operation. Blocks form a queue: bytes are appended at the tail block and released at
 * the head block. A piece is a run of bytes with consecutive offsets in consecutive memory.
 * Appending right behind the last piece makes it longer; appending at an aligned position starts a
 * new one.
 *
 * Two things are bounded so that memory is: the pieces (when PIECES_MAX are in use nothing is
 * aligned any more, so only a new block starts a new piece) and the tail of a block left unused
 * (a block is left early only when less than a quarter of it is free). */
#include "relay/protocol/segments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, PAGE = 4096, PIECES_MAX = 1024 };

struct segments_block {
    struct segments_block *next;
    uint8_t *data;
    size_t used;   /* bytes from the start that are taken, padding included */
    size_t pieces; /* that have bytes here */
};

struct segments_piece {
    uint64_t offset;
    uint8_t *data;
    size_t len;
    struct segments_block *block;
};

void segments_init(struct segments *s, size_t block_size, size_t max)
{
    assert(block_size >= PAGE && block_size % PAGE == 0);
    *s = (struct segments){.block_size = block_size, .max = max};
}

void segments_begin_at(struct segments *s, uint64_t offset)
{
    assert(s->begin == s->end && s->blocks == 0);
    s->begin = s->end = offset;
}

static void free_list(struct segments_block *b)
{
    while (b) {
        struct segments_block *next = b->next;

        free(b->data);
        free(b);
        b = next;
    }
}

void segments_done(struct segments *s)
{
    free_list(s->head);
    free_list(s->spare);
    free(s->pieces);
    *s = (struct segments){0};
}

size_t segments_memory(const struct segments *s)
{
    return s->blocks * s->block_size;
}

size_t segments_memory_max(const struct segments *s)
{
    /* Padding of all pieces; three quarters of each block used; partly released first block, tail
     * and a spare beside them. */
    size_t held = s->max + (size_t)PIECES_MAX * ALIGN;

    return (held / (s->block_size / 4 * 3) + 4) * s->block_size;
}

static struct segments_piece *piece_at(const struct segments *s, size_t i)
{
    return &s->pieces[(s->first + i) & (s->room - 1)];
}

static bool grow_pieces(struct segments *s)
{
    size_t room = s->room ? s->room * 2 : 16;
    struct segments_piece *pieces = calloc(room, sizeof(*pieces));

    if (!pieces) {
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        pieces[i] = *piece_at(s, i);
    }
    free(s->pieces);
    s->pieces = pieces;
    s->room = room;
    s->first = 0;
    return true;
}

static struct segments_block *make_block(const struct segments *s)
{
    struct segments_block *b = calloc(1, sizeof(*b));

    if (!b) {
        return NULL;
    }
    b->data = aligned_alloc(PAGE, s->block_size);
    if (!b->data) {
        free(b);
        return NULL;
    }
    return b;
}

static bool append_block(struct segments *s)
{
    struct segments_block *b = s->spare;

    if (b) {
        s->spare = b->next;
    } else if (segments_memory(s) + s->block_size > segments_memory_max(s)) {
        return false;
    } else {
        b = make_block(s);
        if (!b) {
            return false;
        }
        s->blocks++;
    }
    b->next = NULL;
    b->used = 0;
    if (s->tail) {
        s->tail->next = b;
    } else {
        s->head = b;
    }
    s->tail = b;
    return true;
}

size_t segments_reserve(struct segments *s, size_t want, bool align, uint8_t **ret)
{
    size_t held = (size_t)(s->end - s->begin);
    size_t enough;

    if (want > s->max - held) {
        want = s->max - held;
    }
    if (want == 0 || (s->count == s->room && !grow_pieces(s))) {
        return 0;
    }
    align = align && s->count < PIECES_MAX;
    enough = want < s->block_size / 4 ? want : s->block_size / 4;
    size_t pos = s->tail ? s->tail->used : 0;

    if (align) {
        pos = (pos + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    }
    if (!s->tail || pos + enough > s->block_size) {
        if (!append_block(s)) {
            return 0;
        }
        pos = 0;
    }
    s->reserved = s->tail->data + pos;
    *ret = s->reserved;
    return want < s->block_size - pos ? want : s->block_size - pos;
}

void segments_commit(struct segments *s, size_t n)
{
    struct segments_piece *last = s->count ? piece_at(s, s->count - 1) : NULL;

    assert(s->reserved && s->reserved + n <= s->tail->data + s->block_size);
    if (n == 0) {
        return;
    }
    if (last && last->block == s->tail && last->data + last->len == s->reserved) {
        last->len += n;
    } else {
        *piece_at(s, s->count++) = (struct segments_piece){
            .offset = s->end, .data = s->reserved, .len = n, .block = s->tail};
        s->tail->pieces++;
    }
    s->tail->used = (size_t)(s->reserved - s->tail->data) + n;
    s->end += n;
    s->reserved = NULL;
}

size_t segments_peek(const struct segments *s, uint64_t offset, const uint8_t **ret)
{
    size_t low = 0, high = s->count;

    if (offset < s->begin || offset >= s->end) {
        return 0;
    }
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;

        if (piece_at(s, mid)->offset <= offset) {
            low = mid;
        } else {
            high = mid;
        }
    }
    const struct segments_piece *p = piece_at(s, low);
    size_t skip = (size_t)(offset - p->offset);

    *ret = p->data + skip;
    return p->len - skip;
}

int segments_vec(const struct segments *s, struct iovec *vec, int max)
{
    int n = 0;

    for (; n < max && (size_t)n < s->count; n++) {
        const struct segments_piece *p = piece_at(s, (size_t)n);

        vec[n] = (struct iovec){.iov_base = p->data, .iov_len = p->len};
    }
    return n;
}

/* Blocks without bytes leave the head of the queue; the tail stays and starts over. */
static void release_blocks(struct segments *s)
{
    while (s->head && s->head->pieces == 0 && s->head != s->tail) {
        struct segments_block *b = s->head;

        s->head = b->next;
        b->next = s->spare;
        s->spare = b;
    }
    if (s->tail && s->tail->pieces == 0) {
        s->tail->used = 0;
    }
}

void segments_release(struct segments *s, uint64_t offset)
{
    if (offset > s->end) {
        offset = s->end;
    }
    if (offset <= s->begin) {
        return;
    }
    while (s->count) {
        struct segments_piece *p = piece_at(s, 0);

        if (p->offset + p->len > offset) {
            size_t skip = offset > p->offset ? (size_t)(offset - p->offset) : 0;

            p->offset += skip;
            p->data += skip;
            p->len -= skip;
            break;
        }
        p->block->pieces--;
        s->first = (s->first + 1) & (s->room - 1);
        s->count--;
    }
    s->begin = offset;
    release_blocks(s);
}

void segments_trim(struct segments *s)
{
    struct segments_block *empty = s->spare;

    s->spare = NULL;
    if (s->tail && s->head == s->tail && s->tail->pieces == 0) {
        s->tail->next = empty;
        empty = s->tail;
        s->head = s->tail = NULL;
        s->reserved = NULL;
    }
    for (struct segments_block *b = empty; b; b = b->next) {
        s->blocks--;
    }
    free_list(empty);
    if (s->count == 0) {
        free(s->pieces);
        s->pieces = NULL;
        s->room = 0;
        s->first = 0;
    }
}
