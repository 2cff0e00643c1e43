/* The way to a site's directory, for the users that its programs become: a relay is not root, and
 * puts its sockets into the pods' directories below. A directory on the way that its user may not
 * pass makes every move wait in vain, so it is looked for before anything is made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* A directory on the way, from / on down. */
struct site_step {
    char *path;
    mode_t mode; /* permission bits */
    uid_t uid;
    gid_t gid;
    bool listed; /* an access control list says more than the mode: who may pass is not judged */
};

/* The first that a user with this uid and gid, and no other groups, may not pass; NULL = none.
 * Pure. */
const struct site_step *site_way_stop(const struct site_step *steps, size_t n, uid_t uid,
                                      gid_t gid);

/* Fails when the relays' user cannot pass what there is of `root` and the directories above it;
 * what is not there yet is made passable. */
int site_way_check(const char *root, struct ferry_error *err);
