/* "Did you mean ...?" */
#pragma once

#include <stddef.h>

/* The candidate nearest to `word` by letters added, dropped, changed or swapped; NULL when none is
 * near enough to be what was meant. Pure. */
const char *ferry_suggest(const char *word, const char *const *candidates, size_t n);
