#include "cli/views/table.h"

#include <assert.h>
#include <string.h>

enum { GAP = 3 };

void table_init(struct table *t, const char *const *headers)
{
    *t = (struct table){0};
    while (headers[t->n_columns]) {
        t->n_columns++;
    }
    assert(t->n_columns <= TABLE_COLUMNS);
    table_row(t, headers);
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    *t = (struct table){0};
}

void table_row(struct table *t, const char *const *cells)
{
    t->cells = ferry_xrealloc(t->cells, (t->n_rows + 1) * t->n_columns, sizeof(*t->cells));
    for (size_t i = 0; i < t->n_columns; i++) {
        t->cells[t->n_rows * t->n_columns + i] =
            ferry_strdup(ferry_str_empty(cells[i]) ? "-" : cells[i]);
    }
    t->n_rows++;
}

void table_render(const struct table *t, struct ferry_buf *out)
{
    size_t width[TABLE_COLUMNS] = {0};

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        size_t len = strlen(t->cells[i]);

        if (len > width[i % t->n_columns]) {
            width[i % t->n_columns] = len;
        }
    }
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            const char *cell = t->cells[r * t->n_columns + c];

            if (c + 1 == t->n_columns) { /* no blanks at the end of a line */
                ferry_buf_printf(out, "%s\n", cell);
            } else {
                ferry_buf_printf(out, "%-*s", (int)(width[c] + GAP), cell);
            }
        }
    }
}
