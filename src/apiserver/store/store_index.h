/* The objects of one resource in memory: sorted by namespace and name, and those that are about
 * something (entry.h) also by namespace and that. No locks of its own. */
#pragma once

#include "apiserver/store/entry.h"

struct store_index {
    struct entry **items;
    size_t n, cap;
    struct entry **order; /* those that are about something: namespace, about, name */
    size_t n_order, cap_order;
};

/* Borrowed, until the index changes. */
struct store_index_span {
    struct entry *const *items;
    size_t n;
};

void store_index_put(struct store_index *index, struct entry *take);
void store_index_remove(struct store_index *index, const char *ns, const char *name);
/* Borrowed, or NULL. */
struct entry *store_index_get(const struct store_index *index, const char *ns, const char *name);
/* `ns` NULL = all namespaces. */
struct store_index_span store_index_list(const struct store_index *index, const char *ns);
struct store_index_span store_index_find(const struct store_index *index, const char *ns,
                                         const char *about);

/* For whoever takes `items` over. */
void store_index_free_order(struct store_index *index);
void store_index_done(struct store_index *index);
