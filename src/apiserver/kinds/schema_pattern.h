/* The patterns of schemas, each compiled once. Any thread. */
#pragma once

#include <stdbool.h>

/* Whether `text` matches; a pattern that cannot be compiled refuses nothing. Patterns come from
 * schemas alone, for each is kept for ever. */
bool schema_pattern_matches(const char *pattern, const char *text);
