#include "kube/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct bucket {
    struct ferry_link link;
    char *key;
    struct api_object **items;
    size_t n;
};

static void bucket_free(struct ferry_link *l)
{
    struct bucket *b = (struct bucket *)l;

    free(b->key);
    free(b->items);
    free(b);
}

static uint64_t hash_of(const char *key)
{
    return ferry_hash_text(ferry_map_seed(), key);
}

static struct bucket *find(const struct kube_index *x, const char *key)
{
    for (struct ferry_link *l = ferry_map_first(&x->buckets, hash_of(key)); l;
         l = ferry_map_next(l)) {
        struct bucket *b = (struct bucket *)l;

        if (strcmp(b->key, key) == 0) {
            return b;
        }
    }
    return NULL;
}

void kube_index_add(struct kube_index *x, const char *key, struct api_object *o)
{
    struct bucket *b = find(x, key);

    if (!b) {
        b = ferry_xcalloc(1, sizeof(*b));
        b->key = ferry_strdup(key);
        ferry_map_add(&x->buckets, &b->link, hash_of(key));
    }
    b->items = ferry_xrealloc(b->items, b->n + 1, sizeof(struct api_object *));
    b->items[b->n++] = o;
}

void kube_index_remove(struct kube_index *x, const char *key, const struct api_object *o)
{
    struct bucket *b = find(x, key);

    for (size_t i = 0; b && i < b->n; i++) {
        if (b->items[i] == o) {
            memmove(&b->items[i], &b->items[i + 1], (b->n - i - 1) * sizeof(struct api_object *));
            b->n--;
            break;
        }
    }
    if (b && b->n == 0) {
        ferry_map_remove(&x->buckets, &b->link);
        bucket_free(&b->link);
    }
}

struct api_object *const *kube_index_find(const struct kube_index *x, const char *key,
                                          size_t *ret_n)
{
    const struct bucket *b = find(x, key);

    *ret_n = b ? b->n : 0;
    return b ? b->items : NULL;
}

void kube_index_done(struct kube_index *x)
{
    ferry_map_done(&x->buckets, bucket_free);
}
