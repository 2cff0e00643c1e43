/* Users of this host that a program becomes, or acts as for a moment, when it was started as root.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Who a program is where the host has no user of its name: uid and gid. */
enum { FERRY_APISERVER_ID = 61202, FERRY_CONTROLLER_ID = 61203 };
#define FERRY_APISERVER_USER "ferry-apiserver"
#define FERRY_CONTROLLER_USER "ferry-controller"

struct ferry_user {
    uid_t uid;
    gid_t gid;
};
#define FERRY_NO_GROUP ((gid_t)-1)

/* `text` is a user's name or UID:GID, and what `option` was given; NULL stands for user `name`, or
 * for `id` as both where this host has no such user. */
int ferry_user_find(const char *text, const char *option, const char *name, unsigned id,
                    struct ferry_user *ret, struct ferry_error *err);

/* For good: no other group than `also` (FERRY_NO_GROUP = none), no new privileges, no core dumps.
 * Nothing is done when this program is not root, or is to be. */
int ferry_user_become(const struct ferry_user *u, gid_t also, struct ferry_error *err);

/* For a moment, so that what is made belongs to `u`; nothing is done when this program is not root.
 * One thread alone. */
int ferry_user_act_as(const struct ferry_user *u, struct ferry_error *err);
int ferry_user_return(struct ferry_error *err);

/* Signals a process as the user that it runs as, by this thread alone and without CAP_KILL: nobody
 * else's process can be hit. 0 as well when the process has ended. */
int ferry_user_signal(int pidfd, pid_t pid, int sig, struct ferry_error *err);

/* Whether a peer with this uid may be root, for a socket that only root and this program's user can
 * reach: where a user namespace has no root, root looks like everybody else who is not in it. */
bool ferry_user_may_be_root(uid_t uid);

/* The same of known values: `map` as /proc/self/uid_map, `overflow` is who the others are. */
bool ferry_user_map_may_be_root(const char *map, uid_t overflow, uid_t uid);
