/* Certificates for nodes: POST /ferry/v1/join with a one-time token, POST /ferry/v1/renew with the
 * certificate at hand. The name in the certificate is the token's (or the caller's), whatever the
 * request says; the request only proves that its maker has the key. */
#pragma once

#include "apiserver/request/request.h"
#include "tls/pki.h"

bool join_is_path(const char *path);
/* Before the body is read: whether the caller may send one. A good token vouches for it. */
int join_check(struct request *r);
/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int join_serve(struct request *r, const struct pki_ca *ca);
