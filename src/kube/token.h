/* Makes bearer tokens of the embedded engine: "ferry.ID.SECRET". The server keeps a hash of SECRET
 * in the secret kube-system/ferry-token.ID, beside what the token is for; SECRET itself is nowhere.
 */
#pragma once

#include <stdint.h>

#include "kube/client.h"

enum { KUBE_TOKEN_SIZE = 128 };

struct kube_token_use {
    const char *node;  /* to join as this node, once, or */
    const char *user;  /* to call as this user */
    const char *group; /* ... in this group, or NULL */
    int64_t life_s;    /* 0 = no end; a joining token always has one */
};

/* The caller wipes `ret` when it is done with it. */
int kube_token_create(struct kube_client *client, const struct kube_token_use *use,
                      char ret[KUBE_TOKEN_SIZE], struct ferry_error *err);
