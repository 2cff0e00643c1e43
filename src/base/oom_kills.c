#include "base/oom_kills.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int64_t ferry_oom_kills(const char *text)
{
    for (const char *line = text; *line;) {
        if (ferry_str_starts(line, "oom_kill ")) {
            return strtoll(line + strlen("oom_kill "), NULL, 10);
        }
        line += strcspn(line, "\n");
        line += *line ? 1 : 0;
    }
    return 0;
}
