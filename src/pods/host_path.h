/* Which paths of its host a pod may name as a volume: those below directories that the
 * administrator allowed (ferry-pods --host-path-roots), and only where no guest could have put
 * something else on the way. A path of a PersistentVolume is the administrator's own and not asked
 * about. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* When nothing is said: "/var/lib/ferry" itself has keys. */
#define HOST_PATH_ROOTS "/var/lib/ferry/disks:/srv:/data:/mnt:/media"

/* The length of the root in `roots` (absolute, separated by ':') that `path` is below, or is, at
 * *ret_at; 0 when there is none, or when the path has a "..". Pure. */
size_t host_path_root(const char *roots, const char *path, const char **ret_at);

enum host_path_kind {
    HOST_PATH_DIRECTORY,
    HOST_PATH_MADE,  /* a directory; what is missing is made */
    HOST_PATH_DEVICE /* its name may be a link, as udev makes them */
};

/* Walks PREFIX/path: no link on the way, no directory that a guest may write to. What is not there
 * is no error here. */
int host_path_check(const char *prefix, const char *roots, const char *path,
                    enum host_path_kind kind, struct ferry_error *err);
