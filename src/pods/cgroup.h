/* The control groups of a pod: MOUNT/ferry-pods/UID, in each hierarchy that has one of our
 * controllers. They live as long as the pod's directory, and are found again by the pod's UID. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "pods/cgroup_plan.h"

/* What this host has; controllers whose hierarchy cannot be written to are left out, and said so
 * in the log. */
void cgroup_detect(struct cgroup_layout *ret);

/* Files to write "0" to by who is to be in the groups; NULL-terminated. */
struct cgroup_joins {
    char *files[CGROUP_CONTROLLERS + 1];
};
void cgroup_joins_done(struct cgroup_joins *j);

int cgroup_make(const struct cgroup_layout *l, const char *uid, const struct cgroup_limits *limits,
                struct cgroup_joins *ret, struct ferry_error *err);
/* Missing is fine; -FERRY_RETRY while a process is still ending in one. */
int cgroup_remove(const struct cgroup_layout *l, const char *uid, struct ferry_error *err);
/* Processes of the pod that the kernel killed because its memory was used up. */
long long cgroup_kills(const struct cgroup_layout *l, const char *uid);
