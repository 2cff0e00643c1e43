/* Who a peer is: the rules by which a relay accepts another relay's certificate, and the words in
 * which it refuses one. Pure over certificates; no sockets, no files. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum tls_role { TLS_CLIENT, TLS_SERVER };

enum tls_refusal {
    TLS_ACCEPTED = 0,
    TLS_NO_CERTIFICATE,
    TLS_SELF_SIGNED,
    TLS_UNKNOWN_CA,
    TLS_EXPIRED,
    TLS_NOT_YET_VALID,
    TLS_WRONG_USAGE,
    TLS_WRONG_NODE,
    TLS_WRONG_COMMON_NAME,
    TLS_REMOVED, /* its node is no longer one of the site */
    TLS_BROKEN,  /* anything else that is wrong with the chain */
    TLS_REFUSAL_COUNT
};

/* What an X509_V_* result of verifying the chain means. */
enum tls_refusal tls_identity_of_verify(int x509_v);

/* Who a peer must be: by its node, or, as KubeVirt's proxies do it, by its common name. */
struct tls_name {
    const char *node; /* in a SAN URI ferry://node/NAME */
    const char *common_name;
};

/* A leaf whose chain is good: it must say that it may be used as `peer_role` (a certificate that
 * names no usage at all is refused) and carry every name that is given. */
enum tls_refusal tls_identity_check(const X509 *leaf, enum tls_role peer_role,
                                    const struct tls_name *name);

struct tls_denial;
/* It names the denial's node, and that denial refuses it. */
bool tls_identity_is_denied(const X509 *leaf, const struct tls_denial *denial);

/* Fills `err` (class DENIED) with a sentence about `leaf` (NULL when there is none). */
int tls_identity_refuse(struct ferry_error *err, enum tls_refusal why, const X509 *leaf,
                        enum tls_role peer_role, const struct tls_name *name);

/* A relay's own certificate (PEM), as others will judge it: its dates, its usages, the node it
 * names. `text` then says what it says; else `err` has the sentence. The chain is not looked at. */
enum { TLS_IDENTITY_TEXT = 256 };
int tls_identity_check_own(const char *pem, size_t len, const char *node,
                           char text[TLS_IDENTITY_TEXT], struct ferry_error *err);
