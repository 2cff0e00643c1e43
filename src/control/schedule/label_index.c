#include "control/schedule/label_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"

struct label_bucket {
    struct ferry_link link;
    struct label_member **members;
    size_t n, cap;
    const char *value; /* in `key`, behind its text */
    char key[];
};

struct label_index {
    struct ferry_map buckets;
};

struct label_index *label_index_new(void)
{
    return ferry_xcalloc(1, sizeof(struct label_index));
}

static void bucket_free(struct ferry_link *l)
{
    struct label_bucket *b = (struct label_bucket *)l;

    free(b->members);
    free(b);
}

void label_index_free(struct label_index *x)
{
    if (x) {
        ferry_map_done(&x->buckets, bucket_free);
        free(x);
    }
}

static uint64_t hash_of(const char *key, const char *value)
{
    return ferry_hash_text(ferry_hash_text(ferry_map_seed(), key), value);
}

static struct label_bucket *find(const struct label_index *x, const char *key, const char *value,
                                 uint64_t hash)
{
    for (struct ferry_link *l = ferry_map_first(&x->buckets, hash); l; l = ferry_map_next(l)) {
        struct label_bucket *b = (struct label_bucket *)l;

        if (strcmp(b->value, value) == 0 && strcmp(b->key, key) == 0) {
            return b;
        }
    }
    return NULL;
}

static struct label_bucket *new_bucket(struct label_index *x, const char *key, const char *value,
                                       uint64_t hash)
{
    size_t n_key = strlen(key) + 1, n_value = strlen(value) + 1;
    struct label_bucket *b = ferry_xcalloc(1, sizeof(*b) + n_key + n_value);

    memcpy(b->key, key, n_key);
    b->value = memcpy(b->key + n_key, value, n_value);
    ferry_map_add(&x->buckets, &b->link, hash);
    return b;
}

void label_index_add(struct label_index *x, const char *key, const char *value,
                     struct label_member *m)
{
    uint64_t hash = hash_of(key, value);
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
        ferry_map_remove(&x->buckets, &b->link);
        bucket_free(&b->link);
    }
}

struct label_member *const *label_index_find(const struct label_index *x, const char *key,
                                             const char *value, size_t *ret_n)
{
    const struct label_bucket *b = find(x, key, value, hash_of(key, value));

    *ret_n = b ? b->n : 0;
    return b ? b->members : NULL;
}
