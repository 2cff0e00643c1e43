#include "control/schedule/label_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct label_bucket {
    struct label_bucket *next; /* of the same row */
    uint32_t hash;
    struct label_member **members;
    size_t n, cap;
    const char *value; /* in `key`, behind its text */
    char key[];
};

struct label_index {
    struct label_bucket **rows;
    size_t n_rows, n_buckets;
};

struct label_index *label_index_new(void)
{
    return ferry_xcalloc(1, sizeof(struct label_index));
}

static void bucket_free(struct label_bucket *b)
{
    free(b->members);
    free(b);
}

void label_index_free(struct label_index *x)
{
    for (size_t i = 0; x && i < x->n_rows; i++) {
        for (struct label_bucket *next; x->rows[i]; x->rows[i] = next) {
            next = x->rows[i]->next;
            bucket_free(x->rows[i]);
        }
    }
    if (x) {
        free(x->rows);
        free(x);
    }
}

static uint32_t add_text(uint32_t h, const char *text)
{
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * 16777619u;
    }
    return (h ^ 0xff) * 16777619u; /* no byte of a text: "a" "bc" is not "ab" "c" */
}

static uint32_t hash_of(const char *key, const char *value)
{
    uint32_t h = add_text(add_text(2166136261u, key), value);

    return (h ^ h >> 15) * 2654435761u;
}

static struct label_bucket *find(const struct label_index *x, const char *key, const char *value,
                                 uint32_t hash)
{
    struct label_bucket *b = x->n_rows ? x->rows[hash % x->n_rows] : NULL;

    while (b && (b->hash != hash || strcmp(b->value, value) != 0 || strcmp(b->key, key) != 0)) {
        b = b->next;
    }
    return b;
}

static void link_bucket(struct label_index *x, struct label_bucket *b)
{
    struct label_bucket **at = &x->rows[b->hash % x->n_rows];

    b->next = *at;
    *at = b;
}

static void grow(struct label_index *x)
{
    struct label_bucket **old = x->rows;
    size_t n = x->n_rows;

    x->n_rows = n ? 2 * n : 64;
    x->rows = ferry_xcalloc(x->n_rows, sizeof(struct label_bucket *));
    for (size_t i = 0; i < n; i++) {
        for (struct label_bucket *next; old[i]; old[i] = next) {
            next = old[i]->next;
            link_bucket(x, old[i]);
        }
    }
    free(old);
}

static struct label_bucket *new_bucket(struct label_index *x, const char *key, const char *value,
                                       uint32_t hash)
{
    size_t n_key = strlen(key) + 1, n_value = strlen(value) + 1;
    struct label_bucket *b = ferry_xcalloc(1, sizeof(*b) + n_key + n_value);

    if (x->n_buckets == x->n_rows) {
        grow(x);
    }
    b->hash = hash;
    memcpy(b->key, key, n_key);
    b->value = memcpy(b->key + n_key, value, n_value);
    link_bucket(x, b);
    x->n_buckets++;
    return b;
}

void label_index_add(struct label_index *x, const char *key, const char *value,
                     struct label_member *m)
{
    uint32_t hash = hash_of(key, value);
    struct label_bucket *b = find(x, key, value, hash);

    b = b ? b : new_bucket(x, key, value, hash);
    if (b->n == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 1; /* most labels are a pod's own */
        b->members = ferry_xrealloc(b->members, b->cap, sizeof(struct label_member *));
    }
    m->bucket = b;
    m->at = b->n;
    b->members[b->n++] = m;
}

static void drop_bucket(struct label_index *x, struct label_bucket *b)
{
    struct label_bucket **at = &x->rows[b->hash % x->n_rows];

    while (*at != b) {
        at = &(*at)->next;
    }
    *at = b->next;
    x->n_buckets--;
    bucket_free(b);
}

void label_index_remove(struct label_index *x, struct label_member *m)
{
    struct label_bucket *b = m->bucket;

    if (!b) {
        return;
    }
    struct label_member *last = b->members[--b->n];
    b->members[m->at] = last;
    last->at = m->at;
    m->bucket = NULL;
    if (b->n == 0) {
        drop_bucket(x, b);
    }
}

struct label_member *const *label_index_find(const struct label_index *x, const char *key,
                                             const char *value, size_t *ret_n)
{
    const struct label_bucket *b = find(x, key, value, hash_of(key, value));

    *ret_n = b ? b->n : 0;
    return b ? b->members : NULL;
}
