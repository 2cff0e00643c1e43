/* Bearer tokens: "ferry.ID.SECRET". What a token is for stands in the secret
 * kube-system/ferry-token.ID, with a hash of SECRET, never SECRET itself. A token for joining is
 * used up by its first use. kube/token.h makes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/access/auth.h"
#include "apiserver/store/store.h"
#include "tls/denial.h"

/* Who calls with "Authorization: Bearer ..."; false when the token is not good. */
bool token_identify(struct store *store, const char *authorization, struct auth_who *ret);
/* Whether it is a joining token: for `node`, or for any when that is NULL. Uses nothing up. */
bool token_is_for(struct store *store, const char *authorization, const char *node);
/* Uses up a joining token: true when it is good for `node`, and never again. Certificates for this
 * joining name `generation` (deny.h). */
bool token_join(struct store *store, const char *authorization, const char *node,
                char generation[TLS_GENERATION_SIZE]);
