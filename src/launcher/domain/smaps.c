#include "launcher/domain/smaps.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

int64_t smaps_guest_resident(const char *text, int64_t guest_bytes)
{
    int64_t size = -1, best_size = INT64_MAX, best = -1;

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        unsigned long long from, to, kib;
        char dash;

        line += *line == '\n';
        if (sscanf(line, "%llx%c%llx ", &from, &dash, &to) == 3 && dash == '-' && to > from) {
            size = (int64_t)(to - from);
        } else if (sscanf(line, "Rss: %llu kB", &kib) == 1 && size >= guest_bytes &&
                   size < best_size) {
            best_size = size;
            best = (int64_t)kib * 1024;
        }
    }
    return best;
}
