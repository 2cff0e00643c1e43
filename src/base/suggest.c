#include "base/suggest.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { LONGEST = 32 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Optimal string alignment distance. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[LONGEST + 1][LONGEST + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > LONGEST || lb > LONGEST) {
        return LONGEST;
    }
    for (size_t i = 0; i <= la; i++) {
        for (size_t j = 0; j <= lb; j++) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1,
                              rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                rows[i - 2][j - 2] + 1 < rows[i][j]) {
                rows[i][j] = rows[i - 2][j - 2] + 1;
            }
        }
    }
    return rows[la][lb];
}

const char *ferry_suggest(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 1; /* one slip in short words, more in long ones */

    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, candidates[i]);

        if (d <= best_distance && (!best || d < best_distance)) {
            best = candidates[i];
            best_distance = d;
        }
        if (strlen(word) >= 2 && ferry_str_starts(candidates[i], word)) {
            return candidates[i];
        }
    }
    return best;
}
