/* Which things have a label, by key and value: so that a selector that names one is held against
 * those few alone. The things are the caller's numbers, texts are lent. Pure. */
#pragma once

#include <stddef.h>

struct label_index;
struct label_index *label_index_new(void);
void label_index_free(struct label_index *x); /* takes NULL */

void label_index_add(struct label_index *x, const char *key, const char *value, size_t thing);
/* In the order in which they were added; valid until the next is. */
const size_t *label_index_find(const struct label_index *x, const char *key, const char *value,
                               size_t *ret_n);
