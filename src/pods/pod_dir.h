/* The directory of a pod on its node (docs/contracts/paths.md), and how much each part of it may
 * hold.
 *
 * What the sandbox's user writes is on file systems of its own, each with a size: a guest that
 * fills one harms itself alone, and the files that the agent needs to end it are elsewhere. One
 * directory per caller at a time. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct pod_dir_users {
    uid_t vm_uid;
    gid_t vm_gid, relay_gid;
};

/* Makes it, with all that every pod has. What is there already stays. */
int pod_dir_make(const char *dir, const struct pod_dir_users *users, struct ferry_error *err);

/* How much memory the volumes that live with a pod may take, of what it asks for: no more than the
 * file system of `pods_dir` has, and none where that is on a disk. */
int64_t pod_dir_disks_bytes(const char *pods_dir, int64_t asked);

/* Makes the directory DIR/disks for such volumes, with a file system of that size unless it is 0.
 */
int pod_dir_make_disks(const char *dir, int64_t bytes, struct ferry_error *err);

/* Removes what is mounted in it, and what is in that; its network namespace too. */
void pod_dir_remove(const char *dir);
