/* A user namespace that has one user and one group, those that the caller is: whatever a process in
 * it becomes, and whatever capability it gets hold of, is worth nothing on the host, whose mounts,
 * networks and processes belong to a namespace above it. To the host everybody in it is who they
 * were. */
#pragma once

#include "base/error.h"

/* Whether the host lets `uid` have one: tried in a child, which becomes that user. */
int jail_users_try(unsigned uid, unsigned gid, struct ferry_error *err);

/* From now on, for this process and all that come from it. The caller has given up root and is
 * `uid`, with one thread; afterwards it has every capability there and has to drop them. Try
 * first: an error leaves it without a user. */
int jail_users_enter(unsigned uid, unsigned gid, struct ferry_error *err);
