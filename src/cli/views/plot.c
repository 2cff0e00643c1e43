#include "cli/views/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/views/progress.h"

/* Parts of a cell, from empty to full. */
enum { PARTS = 8 };
static const char *const unicode_parts[PARTS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_parts[PARTS + 1] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};

int plot_column(int64_t at_ms, int64_t end_ms, int columns)
{
    if (at_ms <= 0 || end_ms <= 0) {
        return 0;
    }
    if (at_ms >= end_ms) {
        return columns - 1;
    }
    return (int)(at_ms * columns / end_ms);
}

static int chart_columns(int width)
{
    return (width < PLOT_MIN_WIDTH ? PLOT_MIN_WIDTH : width) - PLOT_MARGIN - 1;
}

/* A column shows the highest value that falls into it, and what came before it when none does. */
static void fill(const struct plot *p, int64_t *columns, int n)
{
    int64_t last = 0;
    size_t next = 0;

    for (int c = 0; c < n; c++) {
        int64_t best = -1;

        for (; next < p->n_points && plot_column(p->points[next].at_ms, p->end_ms, n) <= c;
             next++) {
            last = p->points[next].value;
            best = last > best ? last : best;
        }
        columns[c] = best >= 0 ? best : last;
    }
}

static int64_t highest(const struct plot *p)
{
    int64_t top = p->top;

    for (size_t i = 0; p->top <= 0 && i < p->n_points; i++) {
        top = p->points[i].value > top ? p->points[i].value : top;
    }
    return top > 0 ? top : 1;
}

void plot_render(const struct plot *p, int width, enum plot_charset charset, struct ferry_buf *out)
{
    const char *const *parts = charset == PLOT_UNICODE ? unicode_parts : ascii_parts;
    const char *wall = charset == PLOT_UNICODE ? "│" : "|";
    int n = chart_columns(width);
    int64_t *columns = ferry_xcalloc((size_t)n, sizeof(*columns)), top = highest(p);

    fill(p, columns, n);
    ferry_buf_printf(out, "%s\n", p->title);
    for (int row = PLOT_ROWS - 1; row >= 0; row--) {
        ferry_buf_printf(out, "%*s %s", PLOT_MARGIN - 2,
                         row == PLOT_ROWS - 1 ? p->peak : (row == 0 ? "0" : ""), wall);
        for (int c = 0; c < n; c++) {
            double level = (double)columns[c] / (double)top * PLOT_ROWS * PARTS;
            int part = (int)(level + 0.5) - row * PARTS;

            /* What is not nothing is seen. */
            part = row == 0 && part < 1 && columns[c] > 0 ? 1 : part;
            ferry_buf_puts(out, parts[part < 0 ? 0 : (part > PARTS ? PARTS : part)]);
        }
        ferry_buf_puts(out, "\n");
    }
    free(columns);
}

void plot_axis(int64_t end_ms, const struct plot_mark *marks, size_t n_marks, int width,
               enum plot_charset charset, struct ferry_buf *out)
{
    const char *line = charset == PLOT_UNICODE ? "─" : "-";
    const char *corner = charset == PLOT_UNICODE ? "└" : "+";
    int n = chart_columns(width);
    ferry_cleanup_free char *letters = ferry_xcalloc((size_t)n + 1, 1);
    char end[PROGRESS_TEXT];

    ferry_buf_printf(out, "%*s %s", PLOT_MARGIN - 2, "", corner);
    for (int c = 0; c < n; c++) {
        ferry_buf_puts(out, line);
    }
    memset(letters, ' ', (size_t)n);
    for (size_t i = 0; i < n_marks; i++) {
        letters[plot_column(marks[i].at_ms, end_ms, n)] = marks[i].letter;
    }
    progress_duration(end_ms, end);
    ferry_buf_printf(out, "\n%*s%s\n", PLOT_MARGIN, "", letters);
    ferry_buf_printf(out, "%*s0 s%*s\n", PLOT_MARGIN, "", n - 3, end);
}
