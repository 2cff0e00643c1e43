/* The objects of one resource in memory: sorted by namespace and name, and those that are about
 * something (entry.h) also by namespace and that. No locks of its own. */
#pragma once

#include "apiserver/store/entry.h"

struct shelf {
    struct entry **items;
    size_t n, cap;
    struct entry **order; /* those that are about something: namespace, about, name */
    size_t n_order, cap_order;
};

/* Borrowed, until the shelf changes. */
struct shelf_span {
    struct entry *const *items;
    size_t n;
};

void shelf_put(struct shelf *shelf, struct entry *take);
void shelf_remove(struct shelf *shelf, const char *ns, const char *name);
/* Borrowed, or NULL. */
struct entry *shelf_get(const struct shelf *shelf, const char *ns, const char *name);
/* `ns` NULL = all namespaces. */
struct shelf_span shelf_list(const struct shelf *shelf, const char *ns);
struct shelf_span shelf_find(const struct shelf *shelf, const char *ns, const char *about);

/* For whoever takes `items` over. */
void shelf_free_order(struct shelf *shelf);
void shelf_done(struct shelf *shelf);
