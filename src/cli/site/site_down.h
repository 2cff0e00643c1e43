/* Ends a site and removes what it consists of. Works from whatever is there: a running site, one
 * whose supervisor was killed, one that never came up. Doing it twice is fine. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct site_removed {
    int processes, sandboxes, namespaces, mounts;
    bool directory;    /* its files */
    const char *stays; /* why the directory itself was left; NULL = it is gone, or was kept */
};

/* `keep_data` leaves the site's files: processes and namespaces go, a later `ferry up` goes on with
 * what was stored. Without it all that the site made in its directory is removed, and the directory
 * when the site made it. */
int site_down(const char *root, bool keep_data, struct site_removed *ret, struct ferry_error *err);

/* Whether a mount point is in what goes with the site at `root`; the directory itself, and what
 * stands beside the site's own in it, is not. Pure. */
bool site_down_unmounts(const char *root, const char *point);
