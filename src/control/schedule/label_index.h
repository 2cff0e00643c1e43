/* Which things have a label, by key and value: so that a selector that names one is held against
 * those few alone. Texts are copied, the members are their owners'. Pure. */
#pragma once

#include <stddef.h>

struct label_bucket;

/* One thing under one label. Stays where it is while it is in the index. */
struct label_member {
    void *thing;
    struct label_bucket *bucket; /* NULL = in none */
    size_t at;                   /* in the bucket */
};

struct label_index;
struct label_index *label_index_new(void);
void label_index_free(struct label_index *x); /* takes NULL; forgets its members */

void label_index_add(struct label_index *x, const char *key, const char *value,
                     struct label_member *m);
/* One that is in no bucket is fine. */
void label_index_remove(struct label_index *x, struct label_member *m);
/* In no order; valid until the next change. */
struct label_member *const *label_index_find(const struct label_index *x, const char *key,
                                             const char *value, size_t *ret_n);
