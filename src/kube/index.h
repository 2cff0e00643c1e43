/* Objects by a text that is made from each: what lets a reader of a cache find the few it wants
 * without looking at all. Borrows the objects. No locks. */
#pragma once

#include <stddef.h>

#include "api/object.h"
#include "base/hash.h"

struct kube_index {
    struct ferry_map buckets;
};

void kube_index_add(struct kube_index *x, const char *key, struct api_object *o);
void kube_index_remove(struct kube_index *x, const char *key, const struct api_object *o);
/* The objects under a key; `*ret_n` is 0 when there are none. */
struct api_object *const *kube_index_find(const struct kube_index *x, const char *key,
                                          size_t *ret_n);
void kube_index_done(struct kube_index *x);
