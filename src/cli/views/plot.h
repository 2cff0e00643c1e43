/* Charts of columns in a terminal. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum plot_charset { PLOT_ASCII, PLOT_UNICODE };

struct plot_point {
    int64_t at_ms, value;
};

/* A letter below the time axis. */
struct plot_mark {
    int64_t at_ms;
    char letter;
};

struct plot {
    const char *title, *peak; /* peak: the highest value in words, stands beside the top row */
    const struct plot_point *points; /* by time */
    size_t n_points;
    int64_t end_ms; /* the axis is from 0 to here */
    int64_t top;    /* the value of a full column; 0 = the highest of the points */
};

/* The column that a time falls into, of `columns` from 0 to `end_ms`. */
int plot_column(int64_t at_ms, int64_t end_ms, int columns);

/* `width` columns in all, margins included; at least PLOT_MIN_WIDTH is used. */
enum { PLOT_MIN_WIDTH = 40, PLOT_MARGIN = 12, PLOT_ROWS = 6 };
void plot_render(const struct plot *p, int width, enum plot_charset charset, struct ferry_buf *out);

/* The time axis below charts of the same width, with its marks. */
void plot_axis(int64_t end_ms, const struct plot_mark *marks, size_t n_marks, int width,
               enum plot_charset charset, struct ferry_buf *out);
