#include "tls/identity.h"

#include <stdio.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/str.h"
#include "tls/denial.h"
#include "tls/pki.h"

enum { NAME_SHOWN = 128, TIME_SHOWN = 64 };

FERRY_DEFINE_CLEANUP(GENERAL_NAMES *, GENERAL_NAMES_free)
FERRY_DEFINE_CLEANUP(X509 *, X509_free)
FERRY_DEFINE_CLEANUP(BIO *, BIO_vfree)

enum tls_refusal tls_identity_of_verify(int x509_v)
{
    switch (x509_v) {
    case X509_V_OK:
        return TLS_ACCEPTED;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return TLS_SELF_SIGNED;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return TLS_UNKNOWN_CA;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return TLS_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return TLS_NOT_YET_VALID;
    case X509_V_ERR_INVALID_PURPOSE:
        return TLS_WRONG_USAGE;
    default:
        return TLS_BROKEN;
    }
}

static bool same_text(const ASN1_STRING *s, const char *text)
{
    /* By length: a name with a NUL inside must not pass for the part in front of it. */
    size_t n = strlen(text);

    return ASN1_STRING_length(s) == (int)n && memcmp(ASN1_STRING_get0_data(s), text, n) == 0;
}

static bool names_node(const X509 *leaf, const char *node)
{
    ferry_cleanup(GENERAL_NAMES_freep) GENERAL_NAMES *names =
        X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    ferry_cleanup_free char *wanted = pki_node_uri(node);

    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        int type = 0;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);

        if (type == GEN_URI && same_text(s, wanted)) {
            return true;
        }
    }
    return false;
}

static bool has_common_name(const X509 *leaf, const char *common_name)
{
    const X509_NAME *subject = X509_get_subject_name(leaf);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

    return at >= 0 &&
           same_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), common_name) &&
           X509_NAME_get_index_by_NID(subject, NID_commonName, at) < 0;
}

enum tls_refusal tls_identity_check(const X509 *leaf, enum tls_role peer_role,
                                    const struct tls_name *name)
{
    /* The accessors fill a cache inside the certificate, hence not const; they are safe to call. */
    X509 *x = (X509 *)(uintptr_t)leaf;
    uint32_t needed = peer_role == TLS_CLIENT ? XKU_SSL_CLIENT : XKU_SSL_SERVER;

    if (!(X509_get_extension_flags(x) & EXFLAG_XKUSAGE) ||
        !(X509_get_extended_key_usage(x) & needed)) {
        return TLS_WRONG_USAGE;
    }
    if (name->node && !names_node(leaf, name->node)) {
        return TLS_WRONG_NODE;
    }
    if (name->common_name && !has_common_name(leaf, name->common_name)) {
        return TLS_WRONG_COMMON_NAME;
    }
    return TLS_ACCEPTED;
}

/* "" when it names none. */
static void generation_of(const X509 *leaf, char ret[TLS_GENERATION_SIZE])
{
    static const char prefix[] = PKI_GENERATION_PREFIX;
    const X509_NAME *subject = X509_get_subject_name(leaf);
    int skip = (int)sizeof(prefix) - 1, at = -1;

    ret[0] = '\0';
    while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationalUnitName, at)) >= 0) {
        const ASN1_STRING *s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        int len = ASN1_STRING_length(s);

        if (len > skip && len - skip < TLS_GENERATION_SIZE &&
            memcmp(ASN1_STRING_get0_data(s), prefix, (size_t)skip) == 0) {
            snprintf(ret, TLS_GENERATION_SIZE, "%.*s", len - skip,
                     (const char *)ASN1_STRING_get0_data(s) + skip);
            return;
        }
    }
}

/* In seconds since 1970; one that cannot be read is as old as can be. */
static int64_t begin_of(const X509 *leaf)
{
    struct tm tm;

    return ASN1_TIME_to_tm(X509_get0_notBefore(leaf), &tm) == 1 ? (int64_t)timegm(&tm)
                                                                : INT64_MIN / 2;
}

bool tls_identity_is_denied(const X509 *leaf, const struct tls_denial *denial)
{
    char generation[TLS_GENERATION_SIZE];

    if (!names_node(leaf, denial->node)) {
        return false;
    }
    generation_of(leaf, generation);
    return tls_denial_hits(denial, generation, begin_of(leaf));
}

/* The nodes that a certificate does name, for the message. */
static void describe_nodes(const X509 *leaf, char ret[NAME_SHOWN])
{
    static const char prefix[] = "ferry://node/";
    ferry_cleanup(GENERAL_NAMES_freep) GENERAL_NAMES *names =
        X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);

    snprintf(ret, NAME_SHOWN, "no node");
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        int type = 0;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        const char *text = (const char *)ASN1_STRING_get0_data(s);
        int len = ASN1_STRING_length(s);
        int skip = (int)sizeof(prefix) - 1;

        if (type == GEN_URI && len > skip && memcmp(text, prefix, (size_t)skip) == 0) {
            snprintf(ret, NAME_SHOWN, "node '%.*s'", len - skip > 64 ? 64 : len - skip,
                     text + skip);
            return;
        }
    }
}

static void describe_time(const ASN1_TIME *t, char ret[TIME_SHOWN])
{
    struct tm tm;

    if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(ret, TIME_SHOWN, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
        snprintf(ret, TIME_SHOWN, "an unreadable time");
    }
}

static const char *const sentences[] = {
    [TLS_ACCEPTED] = "the certificate is good",
    [TLS_NO_CERTIFICATE] = "no certificate was shown",
    [TLS_SELF_SIGNED] = "the certificate is self-signed",
    [TLS_UNKNOWN_CA] = "the certificate does not come from this site's CA",
    [TLS_EXPIRED] = "the certificate has expired",
    [TLS_NOT_YET_VALID] = "the certificate is not valid yet",
    [TLS_WRONG_USAGE] = "the certificate has the wrong usage",
    [TLS_WRONG_NODE] = "the certificate names the wrong node",
    [TLS_WRONG_COMMON_NAME] = "the certificate has the wrong common name",
    [TLS_REMOVED] = "the node of the certificate was removed from the site",
    [TLS_BROKEN] = "the certificate chain does not verify",
};
_Static_assert(FERRY_COUNT(sentences) == TLS_REFUSAL_COUNT, "one sentence per refusal");

int tls_identity_refuse(struct ferry_error *err, enum tls_refusal why, const X509 *leaf,
                        enum tls_role peer_role, const struct tls_name *name)
{
    char detail[2 * NAME_SHOWN + 32] = "", when[TIME_SHOWN], nodes[NAME_SHOWN] = "";

    if (leaf && why == TLS_EXPIRED) {
        describe_time(X509_get0_notAfter(leaf), when);
        snprintf(detail, sizeof(detail), " (at %s)", when);
    } else if (leaf && why == TLS_NOT_YET_VALID) {
        describe_time(X509_get0_notBefore(leaf), when);
        snprintf(detail, sizeof(detail), " (before %s)", when);
    } else if (why == TLS_WRONG_USAGE) {
        snprintf(detail, sizeof(detail), " (it may not be used as a %s)",
                 peer_role == TLS_CLIENT ? "client" : "server");
    } else if (leaf && why == TLS_REMOVED) {
        describe_nodes(leaf, nodes);
        snprintf(detail, sizeof(detail), " (%s)", nodes);
    } else if (leaf && why == TLS_WRONG_NODE) {
        describe_nodes(leaf, nodes);
        snprintf(detail, sizeof(detail), " (%s, expected '%.128s')", nodes, name->node);
    } else if (leaf && why == TLS_WRONG_COMMON_NAME) {
        X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName, nodes,
                                  sizeof(nodes));
        snprintf(detail, sizeof(detail), " ('%.127s', expected '%.127s')", nodes,
                 name->common_name);
    }
    return ferry_fail(err, FERRY_DENIED, "%s%s", sentences[why], detail);
}

static enum tls_refusal judge_own(const X509 *leaf, const struct tls_name *name)
{
    if (X509_cmp_current_time(X509_get0_notAfter(leaf)) <= 0) {
        return TLS_EXPIRED;
    }
    if (X509_cmp_current_time(X509_get0_notBefore(leaf)) > 0) {
        return TLS_NOT_YET_VALID;
    }
    enum tls_refusal why = tls_identity_check(leaf, TLS_SERVER, name);
    return why ? why : tls_identity_check(leaf, TLS_CLIENT, name);
}

int tls_identity_check_own(const char *pem, size_t len, const char *node,
                           char text[TLS_IDENTITY_TEXT], struct ferry_error *err)
{
    ferry_cleanup(BIO_vfreep) BIO *bio = BIO_new_mem_buf(pem, (int)len);
    ferry_cleanup(X509_freep) X509 *leaf = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    const struct tls_name name = {.node = node};
    char who[NAME_SHOWN], until[TIME_SHOWN];

    if (!leaf) {
        return ferry_fail(err, FERRY_INVALID, "there is no certificate in it");
    }
    enum tls_refusal why = judge_own(leaf, &name);
    if (why) {
        return tls_identity_refuse(err, why, leaf, TLS_SERVER, &name);
    }
    describe_nodes(leaf, who);
    describe_time(X509_get0_notAfter(leaf), until);
    snprintf(text, TLS_IDENTITY_TEXT, "names %s, good until %s", who, until);
    return 0;
}
