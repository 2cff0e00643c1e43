#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/str.h"

enum { ROWS_MIN = 16 };
#define FNV_PRIME UINT64_C(1099511628211)
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */

uint64_t ferry_hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *c = data;

    for (size_t i = 0; i < n; i++) {
        h = (h ^ c[i]) * FNV_PRIME;
    }
    return h;
}

uint64_t ferry_hash_text(uint64_t h, const char *text)
{
    return ferry_hash(h, text, strlen(text) + 1);
}

/* ---- the table ------------------------------------------------------------------------------ */

static uint64_t seed = FERRY_HASH_BASIS;

static void draw(void)
{
    uint64_t drawn = 0;

    if (getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn)) {
        seed = drawn;
    }
}

uint64_t ferry_map_seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, draw);
    return seed;
}

/* The upper bits of a product know all bits of the hash, the lower ones do not. */
static struct ferry_link **row_of(const struct ferry_map *m, uint64_t hash)
{
    return &m->rows[(hash * SPREAD >> 32) & (m->n_rows - 1)];
}

static struct ferry_link *with_hash(struct ferry_link *l, uint64_t hash)
{
    while (l && l->hash != hash) {
        l = l->next;
    }
    return l;
}

struct ferry_link *ferry_map_first(const struct ferry_map *m, uint64_t hash)
{
    return m->n ? with_hash(*row_of(m, hash), hash) : NULL;
}

struct ferry_link *ferry_map_next(const struct ferry_link *l)
{
    return with_hash(l->next, l->hash);
}

static void put(struct ferry_map *m, struct ferry_link *l)
{
    struct ferry_link **row = row_of(m, l->hash);

    l->next = *row;
    *row = l;
}

static void grow(struct ferry_map *m)
{
    struct ferry_link **old = m->rows;
    size_t n = m->n_rows;

    m->n_rows = n ? 2 * n : ROWS_MIN;
    m->rows = ferry_xcalloc(m->n_rows, sizeof(*m->rows));
    for (size_t i = 0; i < n; i++) {
        for (struct ferry_link *next; old[i]; old[i] = next) {
            next = old[i]->next;
            put(m, old[i]);
        }
    }
    free(old);
}

void ferry_map_add(struct ferry_map *m, struct ferry_link *l, uint64_t hash)
{
    if (m->n == m->n_rows) {
        grow(m);
    }
    l->hash = hash;
    put(m, l);
    m->n++;
}

void ferry_map_remove(struct ferry_map *m, struct ferry_link *l)
{
    struct ferry_link **at = row_of(m, l->hash);

    while (*at != l) {
        at = &(*at)->next;
    }
    *at = l->next;
    m->n--;
}

void ferry_map_done(struct ferry_map *m, void (*free_one)(struct ferry_link *l))
{
    for (size_t i = 0; i < m->n_rows; i++) {
        for (struct ferry_link *next; m->rows[i]; m->rows[i] = next) {
            next = m->rows[i]->next;
            free_one(m->rows[i]);
        }
    }
    free(m->rows);
    *m = (struct ferry_map){0};
}
