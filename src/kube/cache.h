/* The objects of one kind by namespace and name, and by one more text if wanted. What an informer
 * keeps; a plain data structure: no locks, no clock, no deltas. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/object.h"
#include "kube/index.h"

struct kube_cached {
    struct api_object *object;
    unsigned round; /* of the last list that had it */
};

struct kube_cache {
    struct kube_cached *items; /* ordered by namespace, then name */
    size_t n, cap;
    unsigned round;
    /* See kube_informer_config.index; set before the first put, or NULL. */
    char *(*index)(const struct api_object *o);
    struct kube_index by_index;
};

/* Takes a reference. False when it has this very version already; else `*ret_old` is what was there
 * before, now the caller's, or NULL. */
bool kube_cache_put(struct kube_cache *c, struct api_object *o, struct api_object **ret_old);
/* Out of the cache and the caller's; NULL when it is not there. `ns` may be NULL. */
struct api_object *kube_cache_drop(struct kube_cache *c, const char *ns, const char *name);
/* Borrowed, or NULL. */
struct api_object *kube_cache_get(const struct kube_cache *c, const char *ns, const char *name);

/* Around the puts of a whole list: what was not put since the round began is dropped. The result
 * (`*ret_n` objects) and what is in it are the caller's. */
void kube_cache_begin_round(struct kube_cache *c);
struct api_object **kube_cache_end_round(struct kube_cache *c, size_t *ret_n);

void kube_cache_done(struct kube_cache *c);
