/* The site's certificates: one CA, and the leaves it signs (docs/contracts/identity.md).
 *
 * All keys are ECDSA P-256. A CA lives ten years; a leaf lives 30 days unless told otherwise and
 * never longer than its CA. Serials are random. Key files are made with mode 0600; keys are never
 * logged and appear in no error text. A struct pki_ca does not change after it was opened: any
 * number of threads may issue from it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct pki_ca;

/* Loads DIR/ca.crt and DIR/ca.key; makes what is missing, and DIR itself (0700), when `create`.
 * Processes that do this at once for one directory get the same CA. A lost ca.crt is made again for
 * the key that is there; a lost ca.key is an error, because nothing could replace it. */
int pki_ca_open(const char *dir, bool create, struct pki_ca **ret, struct ferry_error *err);
void pki_ca_free(struct pki_ca *ca);
/* The CA's certificate; lives as long as `ca`. */
const char *pki_ca_pem(const struct pki_ca *ca);

/* What a leaf says. Lists end with NULL; a NULL list is empty. */
struct pki_leaf {
    const char *common_name;          /* at most 64 bytes */
    const char *generation;           /* of a node's admission (tls/denial.h); NULL or "" = none */
    const char *const *organizations; /* O, one entry each */
    const char *const *uris;          /* subject alternative names */
    const char *const *dns_names;
    const char *const *addresses; /* numeric IPv4 or IPv6 */
    bool client, server;          /* extended key usages */
    int64_t lifetime_s;           /* 0 = 30 days; negative makes one that is over, for tests */
};

/* How a generation is written: an organizational unit (OU) of the subject. */
#define PKI_GENERATION_PREFIX "ferry-generation:"

/* Leaves begin this long before they were made, for clocks that are behind. */
enum { PKI_BACKDATE_S = 300 };

/* A PKCS #10 request as PEM text: of its contents the key counts, and that its maker has it. */
int pki_check_request(const char *request_pem, struct ferry_error *err);
/* A new key and the request for it; of the latter only the key counts (see pki_check_request). Free
 * the key with pki_key_free(). */
int pki_request(const char *common_name, char **ret_request_pem, char **ret_key_pem,
                struct ferry_error *err);
/* From when until when a certificate (PEM) is good, in seconds since 1970. */
int pki_lifetime(const char *cert_pem, int64_t *ret_begin_s, int64_t *ret_end_s,
                 struct ferry_error *err);
/* SHA-256 of a certificate (PEM) in hex: what a person compares. */
enum { PKI_FINGERPRINT_SIZE = 65 };
int pki_fingerprint(const char *cert_pem, char hex[PKI_FINGERPRINT_SIZE], struct ferry_error *err);
/* A certificate that says `leaf` for the key of the request. */
int pki_sign(const struct pki_ca *ca, const struct pki_leaf *leaf, const char *request_pem,
             char **ret_cert_pem, struct ferry_error *err);

/* A new key and its certificate as PEM text. Free the key with pki_key_free(). */
int pki_issue(const struct pki_ca *ca, const struct pki_leaf *leaf, char **ret_cert_pem,
              char **ret_key_pem, struct ferry_error *err);
/* Wipes and frees; NULL is fine. */
void pki_key_free(char *key_pem);

/* The same into files: certificate 0644, key 0600, both owned by the caller's user. Existing files
 * are replaced, the key first. */
int pki_issue_files(const struct pki_ca *ca, const struct pki_leaf *leaf, const char *cert_path,
                    const char *key_path, struct ferry_error *err);

/* "ferry://node/NAME", owned by the caller: the SAN URI by which relays know each other. */
char *pki_node_uri(const char *node);
/* The leaf of node NAME's relay: CN ferry-relay:NAME, that URI, client and server. */
int pki_sign_relay(const struct pki_ca *ca, const char *node, const char *generation,
                   const char *request_pem, char **ret_cert_pem, struct ferry_error *err);
int pki_issue_relay_files(const struct pki_ca *ca, const char *node, const char *cert_path,
                          const char *key_path, struct ferry_error *err);
