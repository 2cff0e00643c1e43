/* Text tables as kubectl prints them: upper-case headers, columns as wide as their widest cell,
 * three spaces between. Pure: rendering goes into a buffer. */
#pragma once

#include <stddef.h>

#include "base/str.h"

enum { TABLE_COLUMNS = 12 };

struct table {
    size_t n_columns, n_rows;
    char **cells; /* n_rows * n_columns; row 0 holds the headers */
};

/* `headers` ends with NULL. */
void table_init(struct table *t, const char *const *headers);
void table_done(struct table *t);
#define table_cleanup ferry_cleanup(table_done)

/* As many strings as there are columns; NULL or "" is shown as "-". Copies. */
void table_row(struct table *t, const char *const *cells);
void table_render(const struct table *t, struct ferry_buf *out);
