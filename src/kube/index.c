#include "kube/index.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct bucket {
    char *key;
    struct api_object **items;
    size_t n;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct bucket *)a)->key, ((const struct bucket *)b)->key);
}

static void bucket_free(void *p)
{
    struct bucket *b = p;

    free(b->key);
    free(b->items);
    free(b);
}

static struct bucket *find(const struct kube_index *x, const char *key)
{
    struct bucket probe = {.key = (char *)(uintptr_t)key};
    struct bucket **slot = tfind(&probe, &x->buckets, by_key);

    return slot ? *slot : NULL;
}

void kube_index_add(struct kube_index *x, const char *key, struct api_object *o)
{
    struct bucket *b = find(x, key);

    if (!b) {
        b = ferry_xcalloc(1, sizeof(*b));
        b->key = ferry_strdup(key);
        if (!tsearch(b, &x->buckets, by_key)) {
            abort(); /* out of memory */
        }
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
        tdelete(b, &x->buckets, by_key);
        bucket_free(b);
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
    tdestroy(x->buckets, bucket_free);
    x->buckets = NULL;
}
