#include "control/label_index.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct entry {
    struct entry *next; /* in its bucket */
    uint32_t hash;
    const char *key, *value;
    size_t *things;
    size_t n;
};

struct label_index {
    struct entry **buckets;
    size_t n_buckets, n_entries;
};

struct label_index *label_index_new(void)
{
    return ferry_xcalloc(1, sizeof(struct label_index));
}

void label_index_free(struct label_index *x)
{
    for (size_t i = 0; x && i < x->n_buckets; i++) {
        for (struct entry *next; x->buckets[i]; x->buckets[i] = next) {
            next = x->buckets[i]->next;
            free(x->buckets[i]->things);
            free(x->buckets[i]);
        }
    }
    if (x) {
        free(x->buckets);
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

static struct entry *find(const struct label_index *x, const char *key, const char *value,
                          uint32_t hash)
{
    struct entry *e = x->n_buckets ? x->buckets[hash % x->n_buckets] : NULL;

    while (e && (e->hash != hash || strcmp(e->value, value) != 0 || strcmp(e->key, key) != 0)) {
        e = e->next;
    }
    return e;
}

static void link_entry(struct label_index *x, struct entry *e)
{
    struct entry **at = &x->buckets[e->hash % x->n_buckets];

    e->next = *at;
    *at = e;
}

static void grow(struct label_index *x)
{
    struct entry **old = x->buckets;
    size_t n = x->n_buckets;

    x->n_buckets = n ? 2 * n : 64;
    x->buckets = ferry_xcalloc(x->n_buckets, sizeof(struct entry *));
    for (size_t i = 0; i < n; i++) {
        for (struct entry *next; old[i]; old[i] = next) {
            next = old[i]->next;
            link_entry(x, old[i]);
        }
    }
    free(old);
}

void label_index_add(struct label_index *x, const char *key, const char *value, size_t thing)
{
    uint32_t hash = hash_of(key, value);
    struct entry *e = find(x, key, value, hash);

    if (!e) {
        if (x->n_entries == x->n_buckets) {
            grow(x);
        }
        e = ferry_xcalloc(1, sizeof(*e));
        *e = (struct entry){.hash = hash, .key = key, .value = value};
        link_entry(x, e);
        x->n_entries++;
    }
    if ((e->n & (e->n - 1)) == 0) { /* full at each power of two */
        e->things = ferry_xrealloc(e->things, e->n ? 2 * e->n : 1, sizeof(*e->things));
    }
    e->things[e->n++] = thing;
}

const size_t *label_index_find(const struct label_index *x, const char *key, const char *value,
                               size_t *ret_n)
{
    const struct entry *e = find(x, key, value, hash_of(key, value));

    *ret_n = e ? e->n : 0;
    return e ? e->things : NULL;
}
