/* The control groups of a pod: MOUNT/ferry-pods/NODE/UID, in each hierarchy that has one of our
 * controllers. They live as long as the pod's directory, and are found again by the pod's UID. NODE
 * is made of the directory of the node's pods, and locked as long as its agent lives: what agents
 * left that are no more is told by that, on hosts with several nodes, too. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "pods/cgroup_plan.h"

/* What this host has; controllers whose hierarchy cannot be written to are left out, and said so
 * in the log. Removes the empty groups of agents that are no more, and those of this one that have
 * no pod. */
void cgroup_detect(const char *pods_dir, struct cgroup_layout *ret);

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
int64_t cgroup_kills(const struct cgroup_layout *l, const char *uid);
/* The file that counts them, the caller's; NULL where nobody counts. */
char *cgroup_kills_path(const struct cgroup_layout *l, const char *uid);
