/* The network namespace of a pod, as a file in its directory.
 *
 * It is made before the sandbox and entered by it, and its links are made through the file: nobody
 * on the host needs the right to look into a guest's processes (CAP_SYS_PTRACE) to give it a tap.
 * Any thread; one directory per caller at a time. */
#pragma once

#include "base/error.h"

/* Makes a new one, with nothing but `lo`, which is up; one that an earlier attempt made goes.
 * `*ret_path` is its file, owned by the caller. */
int pod_netns_make(const char *dir, char **ret_path, struct ferry_error *err);

/* Its file; owned by the caller. NULL for a pod that an older version started. */
char *pod_netns_path(const char *dir);

/* It lives on as long as somebody is in it. */
void pod_netns_remove(const char *dir);
