/* Ends a site and removes what it consists of. Works from whatever is there: a running site, one
 * whose supervisor was killed, one that never came up. Doing it twice is fine. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct site_removed {
    int processes, sandboxes, namespaces, mounts;
    bool directory;
};

/* `keep_data` leaves the site's directory: processes and namespaces go, a later `ferry up` goes on
 * with what was stored. */
int site_down(const char *root, bool keep_data, struct site_removed *ret, struct ferry_error *err);
