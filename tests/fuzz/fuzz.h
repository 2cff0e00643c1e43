/* What fuzz targets share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever comes in. */
static inline void must(bool true_thing)
{
    if (!true_thing) {
        abort();
    }
}

/* The input as text, ended by a NUL, with room behind it as in-place parsers need it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = ferry_xcalloc(1, size + 8);

    if (size > 0) {
        memcpy(text, data, size);
    }
    return text;
}

/* Cuts off and returns the first line; the rest begins behind it ("" when there is none). */
static inline char *fuzz_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');

    *rest = end ? end + 1 : line + strlen(line);
    if (end) {
        *end = '\0';
    }
    return line;
}
