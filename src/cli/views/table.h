/* Text tables as kubectl prints them: upper-case headers, columns as wide as their widest cell,
 * three spaces between. Cells are UTF-8: characters that take two places or none are laid out so,
 * and what a terminal would obey is escaped (base/printable.h). A table is as wide as it has to be,
 * whatever the terminal is. Pure: rendering goes into a buffer. */
#pragma once

#include <stddef.h>

#include "base/str.h"

enum { CLI_TABLE_COLUMNS = 12 };

struct libscols_table;

struct cli_table {
    size_t n_columns, n_rows; /* without the headers */
    struct libscols_table *scols;
};

/* `headers` ends with NULL. */
void cli_table_init(struct cli_table *t, const char *const *headers);
void cli_table_done(struct cli_table *t);
#define cli_table_cleanup ferry_cleanup(cli_table_done)

/* As many strings as there are columns; NULL or "" is shown as "-". Copies. */
void cli_table_row(struct cli_table *t, const char *const *cells);
void cli_table_render(const struct cli_table *t, struct ferry_buf *out);
