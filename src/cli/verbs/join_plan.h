/* What joining a site is made of. Pure. */
#pragma once

#include "base/error.h"

enum { JOIN_FINGERPRINT = 64 };

/* What `ferry token create` prints: the token, a colon, and the fingerprint of the site's CA. */
struct join_token {
    char *token;                            /* owned */
    char fingerprint[JOIN_FINGERPRINT + 1]; /* "" when the text has none */
};
int join_token_parse(const char *text, struct join_token *ret, struct ferry_error *err);
void join_token_done(struct join_token *t); /* wipes it */

/* "https://HOST:PORT" from "HOST[:PORT]" (6443), "[IPV6]:PORT" or such a URL; owned by the caller.
 * NULL with `err` set when it is none of them. */
char *join_server(const char *where, struct ferry_error *err);

/* kubeconfig of a node, which names the files of pki/ beside it; owned by the caller. */
char *join_kubeconfig(const char *server, const char *node);
/* /etc/ferry/node.env; owned by the caller. */
char *join_environment(const char *node, const char *address);
