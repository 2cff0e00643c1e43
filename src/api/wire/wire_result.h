/* The figures of a move that is over: the annotation ferry.io/result of the migration, written by
 * the controller. Pure. */
#pragma once

#include "api/wire/wire_json.h"

struct wire_result { /* -1 = not told */
    int64_t downtime_ms, total_ms, transferred_bytes;
};

/* False when there is nothing to be read; then nothing is told. */
bool wire_result_read(const char *text, struct wire_result *ret);
char *wire_result_text(const struct wire_result *r); /* the caller's */
