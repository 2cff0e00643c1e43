/* Bearer tokens: "ferry.ID.SECRET". What a token is for stands in the secret
 * kube-system/ferry-token.ID, with a hash of SECRET, never SECRET itself. A token for joining is
 * used up by its first use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/auth.h"
#include "apiserver/store.h"

enum { TOKEN_TEXT_MAX = 128 };

struct token_use {
    const char *node;  /* to join as this node, or */
    const char *user;  /* to call as this user */
    const char *group; /* ... in this group, or NULL */
    int64_t life_s;    /* 0 = no end; a joining token always has one */
};
/* A new token and the secret (JSON) to create for it, owned by the caller. */
int token_make(const struct token_use *use, char ret_token[TOKEN_TEXT_MAX], char **ret_secret,
               struct ferry_error *err);

/* Who calls with "Authorization: Bearer ..."; false when the token is not good. */
bool token_identify(struct store *store, const char *authorization, struct auth_who *ret);
/* Uses up a joining token: true when it is good for `node`, and never again. */
bool token_join(struct store *store, const char *authorization, const char *node);
