#include "cli/views/table.h"

#include <assert.h>
#include <libsmartcols.h>
#include <locale.h>
#include <stdlib.h>

#include "base/printable.h"

static const char gap[] = "   ";

/* The library says -ENOMEM and nothing else here. */
static void need(bool done)
{
    if (!done) {
        abort(); /* out of memory */
    }
}

void cli_table_init(struct cli_table *t, const char *const *headers)
{
    *t = (struct cli_table){.scols = scols_new_table()};
    need(t->scols && scols_table_set_column_separator(t->scols, gap) == 0);
    scols_table_set_termforce(t->scols, SCOLS_TERMFORCE_NEVER);
    scols_table_enable_minout(t->scols, 1);
    for (; headers[t->n_columns]; t->n_columns++) {
        need(scols_table_new_column(t->scols, headers[t->n_columns], 0, 0) != NULL);
    }
    assert(t->n_columns <= CLI_TABLE_COLUMNS);
}

void cli_table_done(struct cli_table *t)
{
    scols_unref_table(t->scols);
    *t = (struct cli_table){0};
}

void cli_table_row(struct cli_table *t, const char *const *cells)
{
    struct libscols_line *line = scols_table_new_line(t->scols, NULL);

    need(line != NULL);
    for (size_t i = 0; i < t->n_columns; i++) {
        ferry_cleanup_free char *text =
            ferry_printable_dup(ferry_str_empty(cells[i]) ? "-" : cells[i]);

        need(scols_line_set_data(line, i, text) == 0);
    }
    t->n_rows++;
}

/* Without rows the library prints nothing at all. */
static void put_headers(const struct cli_table *t, struct ferry_buf *out)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        struct libscols_column *column = scols_table_get_column(t->scols, i);
        const char *text = scols_cell_get_data(scols_column_get_header(column));

        ferry_buf_printf(out, "%s%s", i ? gap : "", text);
    }
    ferry_buf_puts(out, "\n");
}

/* The library asks the locale what a character is; ours are UTF-8 wherever this runs. */
void cli_table_render(const struct cli_table *t, struct ferry_buf *out)
{
    if (t->n_rows == 0) {
        put_headers(t, out);
        return;
    }
    ferry_cleanup_free char *text = NULL;
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;

    need(scols_print_table_to_string(t->scols, &text) == 0);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    ferry_buf_printf(out, "%s\n", text);
}
