#include "tls/pki.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "tls/sslerr.h"

enum {
    CA_DAYS = 3650,
    LEAF_DAYS = 30,
    DAY_S = 86400,
    /* A certificate must hold on a node whose clock is a little behind. */
    MAX_PEM = 64 * 1024,
    SERIAL_BITS = 159, /* RFC 5280: at most 20 bytes, positive */
};

struct pki_ca {
    X509 *cert;
    EVP_PKEY *key;
    char *pem;
};

FERRY_DEFINE_CLEANUP(X509 *, X509_free)
FERRY_DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
FERRY_DEFINE_CLEANUP(X509_REQ *, X509_REQ_free)
FERRY_DEFINE_CLEANUP(BIO *, BIO_free_all)
FERRY_DEFINE_CLEANUP(BIGNUM *, BN_free)
FERRY_DEFINE_CLEANUP(X509_EXTENSION *, X509_EXTENSION_free)
FERRY_DEFINE_CLEANUP(GENERAL_NAMES *, GENERAL_NAMES_free)
FERRY_DEFINE_CLEANUP(GENERAL_NAME *, GENERAL_NAME_free)
FERRY_DEFINE_CLEANUP(struct pki_ca *, pki_ca_free)
FERRY_DEFINE_CLEANUP(char *, pki_key_free)

/* ---- building blocks --------------------------------------------------------------------------
 */

static int set_serial(X509 *x, struct ferry_error *err)
{
    ferry_cleanup(BN_freep) BIGNUM *bn = BN_new();

    if (!bn || !BN_rand(bn, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) ||
        !BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x))) {
        return sslerr_fail(err, FERRY_FATAL, "making a serial number");
    }
    return 0;
}

static int add_name(X509_NAME *name, const char *field, const char *value, struct ferry_error *err)
{
    if (!X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1,
                                    -1, 0)) {
        return sslerr_fail(err, FERRY_INVALID, "'%s' cannot be the %s of a certificate", value,
                           field);
    }
    return 0;
}

/* For constant texts only: `value` is OpenSSL's configuration syntax. */
static int add_extension(X509 *x, X509 *issuer, int nid, const char *value, struct ferry_error *err)
{
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    ferry_cleanup(X509_EXTENSION_freep) X509_EXTENSION *ext =
        X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    if (!ext || !X509_add_ext(x, ext, -1)) {
        return sslerr_fail(err, FERRY_FATAL, "adding %s to a certificate", OBJ_nid2sn(nid));
    }
    return 0;
}

static GENERAL_NAME *make_alt_name(int type, const char *value)
{
    ferry_cleanup(GENERAL_NAME_freep) GENERAL_NAME *gn = GENERAL_NAME_new();
    ASN1_STRING *text;

    if (!gn) {
        return NULL;
    }
    if (type == GEN_IPADD) {
        text = a2i_IPADDRESS(value);
    } else {
        text = ASN1_IA5STRING_new();
        if (text && !ASN1_STRING_set(text, value, -1)) {
            ASN1_STRING_free(text);
            text = NULL;
        }
    }
    if (!text) {
        return NULL;
    }
    GENERAL_NAME_set0_value(gn, type, text);
    return ferry_take_ptr(gn);
}

static int add_alt_names(GENERAL_NAMES *names, int type, const char *const *values,
                         struct ferry_error *err)
{
    for (; values && *values; values++) {
        ferry_cleanup(GENERAL_NAME_freep) GENERAL_NAME *gn = make_alt_name(type, *values);

        if (!gn || !sk_GENERAL_NAME_push(names, gn)) {
            return sslerr_fail(err, FERRY_INVALID,
                               "'%s' cannot be an alternative name of a certificate", *values);
        }
        gn = NULL;
    }
    return 0;
}

static int set_alt_names(X509 *x, const struct pki_leaf *leaf, struct ferry_error *err)
{
    ferry_cleanup(GENERAL_NAMES_freep) GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    int rc;

    if (!names) {
        return sslerr_fail(err, FERRY_FATAL, "making alternative names");
    }
    if ((rc = add_alt_names(names, GEN_URI, leaf->uris, err)) < 0 ||
        (rc = add_alt_names(names, GEN_DNS, leaf->dns_names, err)) < 0 ||
        (rc = add_alt_names(names, GEN_IPADD, leaf->addresses, err)) < 0) {
        return rc;
    }
    if (sk_GENERAL_NAME_num(names) > 0 &&
        X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0) != 1) {
        return sslerr_fail(err, FERRY_FATAL, "adding alternative names to a certificate");
    }
    return 0;
}

static int set_lifetime(X509 *x, const X509 *issuer, int64_t lifetime_s, struct ferry_error *err)
{
    /* A lifetime below 0 ends that long ago; it must still begin before it ends. */
    long begin = lifetime_s < 0 ? (long)lifetime_s - DAY_S : -PKI_BACKDATE_S;

    if (!X509_gmtime_adj(X509_getm_notBefore(x), begin) ||
        !X509_gmtime_adj(X509_getm_notAfter(x), (long)lifetime_s)) {
        return sslerr_fail(err, FERRY_FATAL, "setting the lifetime of a certificate");
    }
    if (issuer && ASN1_TIME_compare(X509_get0_notAfter(x), X509_get0_notAfter(issuer)) > 0 &&
        !X509_set1_notAfter(x, X509_get0_notAfter(issuer))) {
        return sslerr_fail(err, FERRY_FATAL, "setting the lifetime of a certificate");
    }
    return 0;
}

static char *bio_text(BIO *bio)
{
    char *data = NULL;
    long n = BIO_get_mem_data(bio, &data);

    return ferry_strndup(data, (size_t)n);
}

static char *cert_pem(X509 *x)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new(BIO_s_mem());

    return bio && PEM_write_bio_X509(bio, x) ? bio_text(bio) : NULL;
}

static char *key_pem(EVP_PKEY *key)
{
    /* Secure-memory BIO: wiped when it is freed. */
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new(BIO_s_secmem());

    return bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) ? bio_text(bio)
                                                                                     : NULL;
}

void pki_key_free(char *pem)
{
    if (pem) {
        OPENSSL_cleanse(pem, strlen(pem));
        free(pem);
    }
}

/* ---- the CA -----------------------------------------------------------------------------------
 */

void pki_ca_free(struct pki_ca *ca)
{
    if (ca) {
        X509_free(ca->cert);
        EVP_PKEY_free(ca->key);
        free(ca->pem);
        free(ca);
    }
}

const char *pki_ca_pem(const struct pki_ca *ca)
{
    return ca->pem;
}

static int make_ca_cert(struct pki_ca *ca, struct ferry_error *err)
{
    ferry_cleanup(X509_freep) X509 *x = X509_new();
    unsigned char tag[EVP_MAX_MD_SIZE];
    char name[32];
    int rc;

    if (!x || !X509_set_version(x, X509_VERSION_3) || !X509_set_pubkey(x, ca->key) ||
        !X509_pubkey_digest(x, EVP_sha256(), tag, NULL)) {
        return sslerr_fail(err, FERRY_FATAL, "making a CA certificate");
    }
    /* The tag tells the CAs of two sites apart where only names are shown. It comes from the key,
     * so that a certificate made again for that key is the issuer of what was signed before. */
    snprintf(name, sizeof(name), "ferry-ca-%02x%02x%02x%02x", tag[0], tag[1], tag[2], tag[3]);
    if ((rc = set_serial(x, err)) < 0 ||
        (rc = add_name(X509_get_subject_name(x), "CN", name, err)) < 0) {
        return rc;
    }
    if (!X509_set_issuer_name(x, X509_get_subject_name(x))) {
        return sslerr_fail(err, FERRY_FATAL, "making a CA certificate");
    }
    if ((rc = set_lifetime(x, NULL, (int64_t)CA_DAYS * DAY_S, err)) < 0 ||
        (rc = add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0", err)) < 0 ||
        (rc = add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign", err)) < 0 ||
        (rc = add_extension(x, x, NID_subject_key_identifier, "hash", err)) < 0) {
        return rc;
    }
    if (!X509_sign(x, ca->key, EVP_sha256()) || !(ca->pem = cert_pem(x))) {
        return sslerr_fail(err, FERRY_FATAL, "signing a CA certificate");
    }
    ca->cert = ferry_take_ptr(x);
    return 0;
}

static int make_ca_key(struct pki_ca *ca, const char *path, struct ferry_error *err)
{
    ca->key = EVP_EC_gen("P-256");
    if (!ca->key) {
        return sslerr_fail(err, FERRY_FATAL, "making a P-256 key");
    }
    ferry_cleanup(pki_key_freep) char *pem = key_pem(ca->key);
    if (!pem) {
        return sslerr_fail(err, FERRY_FATAL, "encoding a key");
    }
    return ferry_write_file(path, pem, strlen(pem), 0600, err);
}

static int load_ca_key(struct pki_ca *ca, const char *path, struct ferry_error *err)
{
    struct ferry_buf b = {0};
    int rc = ferry_read_file(path, MAX_PEM, &b, err);

    if (rc < 0) {
        return rc;
    }
    ferry_cleanup(pki_key_freep) char *pem = ferry_buf_take(&b);
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    ca->key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;
    return ca->key ? 0 : sslerr_fail(err, FERRY_INVALID, "%s holds no private key", path);
}

static int load_ca_cert(struct pki_ca *ca, const char *path, struct ferry_error *err)
{
    struct ferry_buf b = {0};
    int rc = ferry_read_file(path, MAX_PEM, &b, err);

    if (rc < 0) {
        return rc;
    }
    ca->pem = ferry_buf_take(&b);
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(ca->pem, -1);
    ca->cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    return ca->cert ? 0 : sslerr_fail(err, FERRY_INVALID, "%s holds no certificate", path);
}

static int open_locked(const char *dir, bool create, struct pki_ca *ca, struct ferry_error *err)
{
    ferry_cleanup_free char *cert_path = ferry_asprintf("%s/ca.crt", dir);
    ferry_cleanup_free char *key_path = ferry_asprintf("%s/ca.key", dir);
    bool have_cert = access(cert_path, F_OK) == 0;
    bool have_key = access(key_path, F_OK) == 0;
    int rc;

    if (have_cert && !have_key) {
        return ferry_fail(err, FERRY_NOT_FOUND,
                          "%s is there but its key %s is not: certificates can be issued only "
                          "where the key is",
                          cert_path, key_path);
    }
    if (!have_key && !create) {
        return ferry_fail(err, FERRY_NOT_FOUND, "no CA in %s", dir);
    }
    rc = have_key ? load_ca_key(ca, key_path, err) : make_ca_key(ca, key_path, err);
    if (rc < 0) {
        return rc;
    }
    if (!have_cert) {
        rc = make_ca_cert(ca, err);
        return rc < 0 ? rc : ferry_write_file(cert_path, ca->pem, strlen(ca->pem), 0644, err);
    }
    if ((rc = load_ca_cert(ca, cert_path, err)) < 0) {
        return rc;
    }
    if (X509_check_private_key(ca->cert, ca->key) != 1) {
        return sslerr_fail(err, FERRY_INVALID, "%s and %s do not belong together", cert_path,
                           key_path);
    }
    return 0;
}

int pki_ca_open(const char *dir, bool create, struct pki_ca **ret, struct ferry_error *err)
{
    ferry_cleanup(pki_ca_freep) struct pki_ca *ca = ferry_xcalloc(1, sizeof(*ca));
    int rc;

    if (create && (rc = ferry_mkdir_p(dir, 0700, err)) < 0) {
        return rc;
    }
    ferry_cleanup_fd int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0) {
        return ferry_fail_errno(err, errno, "opening CA directory %s", dir);
    }
    while (flock(lock, LOCK_EX) < 0) {
        if (errno != EINTR) {
            return ferry_fail_errno(err, errno, "locking CA directory %s", dir);
        }
    }
    if ((rc = open_locked(dir, create, ca, err)) < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(ca);
    return 0;
}

/* ---- leaves -----------------------------------------------------------------------------------
 */

static int set_usages(X509 *x, X509 *issuer, const struct pki_leaf *leaf, struct ferry_error *err)
{
    const char *purposes = leaf->client && leaf->server ? "clientAuth,serverAuth"
                           : leaf->client               ? "clientAuth"
                                                        : "serverAuth";
    int rc;

    if ((rc = add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE", err)) < 0 ||
        (rc = add_extension(x, issuer, NID_key_usage, "critical,digitalSignature", err)) < 0 ||
        (rc = add_extension(x, issuer, NID_ext_key_usage, purposes, err)) < 0 ||
        (rc = add_extension(x, issuer, NID_subject_key_identifier, "hash", err)) < 0) {
        return rc;
    }
    return add_extension(x, issuer, NID_authority_key_identifier, "keyid:always", err);
}

static int add_generation(X509_NAME *subject, const char *generation, struct ferry_error *err)
{
    if (ferry_str_empty(generation)) {
        return 0;
    }
    ferry_cleanup_free char *text = ferry_asprintf(PKI_GENERATION_PREFIX "%s", generation);
    return add_name(subject, "OU", text, err);
}

static int fill_leaf(X509 *x, const struct pki_ca *ca, const struct pki_leaf *leaf,
                     struct ferry_error *err)
{
    X509_NAME *subject = X509_get_subject_name(x);
    int rc;

    if (!leaf->client && !leaf->server) {
        return ferry_fail(err, FERRY_INVALID, "certificate '%s': it must be of use to someone",
                          leaf->common_name);
    }
    if ((rc = set_serial(x, err)) < 0) {
        return rc;
    }
    for (const char *const *o = leaf->organizations; o && *o; o++) {
        if ((rc = add_name(subject, "O", *o, err)) < 0) {
            return rc;
        }
    }
    if ((rc = add_generation(subject, leaf->generation, err)) < 0 ||
        (rc = add_name(subject, "CN", leaf->common_name, err)) < 0 ||
        (rc = set_lifetime(x, ca->cert,
                           leaf->lifetime_s ? leaf->lifetime_s : (int64_t)LEAF_DAYS * DAY_S, err)) <
            0 ||
        (rc = set_usages(x, ca->cert, leaf, err)) < 0) {
        return rc;
    }
    return set_alt_names(x, leaf, err);
}

static int read_request(const char *request_pem, X509_REQ **ret, struct ferry_error *err)
{
    BIO *bio = BIO_new_mem_buf(request_pem, -1);
    X509_REQ *req = bio ? PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = req ? X509_REQ_get0_pubkey(req) : NULL;

    BIO_free(bio);
    /* Its own signature proves that the maker has the key. */
    if (!key || X509_REQ_verify(req, key) != 1 || EVP_PKEY_get_id(key) != EVP_PKEY_EC ||
        EVP_PKEY_get_bits(key) < 256) {
        X509_REQ_free(req);
        ERR_clear_error();
        return ferry_fail(err, FERRY_INVALID,
                          "not a certificate request (PEM, signed by its own P-256 key)");
    }
    *ret = req;
    return 0;
}

int pki_request(const char *common_name, char **ret_request_pem, char **ret_key_pem,
                struct ferry_error *err)
{
    ferry_cleanup(X509_REQ_freep) X509_REQ *req = X509_REQ_new();
    ferry_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new(BIO_s_mem());

    if (!req || !key || !bio) {
        return sslerr_fail(err, FERRY_FATAL, "making a key for '%s'", common_name);
    }
    int rc = add_name(X509_REQ_get_subject_name(req), "CN", common_name, err);
    if (rc < 0) {
        return rc;
    }
    if (!X509_REQ_set_pubkey(req, key) || !X509_REQ_sign(req, key, EVP_sha256()) ||
        !PEM_write_bio_X509_REQ(bio, req)) {
        return sslerr_fail(err, FERRY_FATAL, "making a certificate request for '%s'", common_name);
    }
    ferry_cleanup_free char *request = bio_text(bio);
    ferry_cleanup(pki_key_freep) char *key_text = key_pem(key);
    if (!request || !key_text) {
        return sslerr_fail(err, FERRY_FATAL, "encoding the request for '%s'", common_name);
    }
    *ret_request_pem = ferry_take_ptr(request);
    *ret_key_pem = ferry_take_ptr(key_text);
    return 0;
}

int pki_fingerprint(const char *pem, char hex[PKI_FINGERPRINT_SIZE], struct ferry_error *err)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    ferry_cleanup(X509_freep) X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (!x || !X509_digest(x, EVP_sha256(), digest, &len)) {
        return sslerr_fail(err, FERRY_INVALID, "reading a certificate");
    }
    for (unsigned i = 0; i < len; i++) {
        snprintf(hex + (size_t)i * 2, 3, "%02x", digest[i]);
    }
    return 0;
}

static int seconds_of(const ASN1_TIME *time, int64_t *ret)
{
    struct tm tm;

    if (!time || !ASN1_TIME_to_tm(time, &tm)) {
        return -1;
    }
    *ret = (int64_t)timegm(&tm);
    return 0;
}

int pki_lifetime(const char *pem, int64_t *ret_begin_s, int64_t *ret_end_s, struct ferry_error *err)
{
    ferry_cleanup(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    ferry_cleanup(X509_freep) X509 *x = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    if (!x || seconds_of(X509_get0_notBefore(x), ret_begin_s) < 0 ||
        seconds_of(X509_get0_notAfter(x), ret_end_s) < 0) {
        return sslerr_fail(err, FERRY_INVALID, "reading the dates of a certificate");
    }
    return 0;
}

int pki_check_request(const char *request_pem, struct ferry_error *err)
{
    X509_REQ *req = NULL;
    int rc = read_request(request_pem, &req, err);

    X509_REQ_free(req);
    return rc;
}

int pki_sign(const struct pki_ca *ca, const struct pki_leaf *leaf, const char *request_pem,
             char **ret_cert_pem, struct ferry_error *err)
{
    ferry_cleanup(X509_freep) X509 *x = X509_new();
    X509_REQ *req = NULL;
    int rc = read_request(request_pem, &req, err);

    if (rc == 0 && (!x || !X509_set_version(x, X509_VERSION_3) ||
                    !X509_set_pubkey(x, X509_REQ_get0_pubkey(req)) ||
                    !X509_set_issuer_name(x, X509_get_subject_name(ca->cert)))) {
        rc = sslerr_fail(err, FERRY_FATAL, "making certificate '%s'", leaf->common_name);
    }
    X509_REQ_free(req);
    rc = rc < 0 ? rc : fill_leaf(x, ca, leaf, err);
    if (rc == 0 && !X509_sign(x, ca->key, EVP_sha256())) {
        rc = sslerr_fail(err, FERRY_FATAL, "signing certificate '%s'", leaf->common_name);
    }
    if (rc < 0) {
        return rc;
    }
    *ret_cert_pem = cert_pem(x);
    return *ret_cert_pem ? 0 : sslerr_fail(err, FERRY_FATAL, "encoding a certificate");
}

int pki_issue(const struct pki_ca *ca, const struct pki_leaf *leaf, char **ret_cert_pem,
              char **ret_key_pem, struct ferry_error *err)
{
    ferry_cleanup(X509_freep) X509 *x = X509_new();
    ferry_cleanup(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
    int rc;

    if (!x || !key || !X509_set_version(x, X509_VERSION_3) || !X509_set_pubkey(x, key) ||
        !X509_set_issuer_name(x, X509_get_subject_name(ca->cert))) {
        return sslerr_fail(err, FERRY_FATAL, "making certificate '%s'", leaf->common_name);
    }
    if ((rc = fill_leaf(x, ca, leaf, err)) < 0) {
        return rc;
    }
    if (!X509_sign(x, ca->key, EVP_sha256())) {
        return sslerr_fail(err, FERRY_FATAL, "signing certificate '%s'", leaf->common_name);
    }
    ferry_cleanup_free char *cert_text = cert_pem(x);
    ferry_cleanup(pki_key_freep) char *key_text = key_pem(key);
    if (!cert_text || !key_text) {
        return sslerr_fail(err, FERRY_FATAL, "encoding certificate '%s'", leaf->common_name);
    }
    *ret_cert_pem = ferry_take_ptr(cert_text);
    *ret_key_pem = ferry_take_ptr(key_text);
    return 0;
}

int pki_issue_files(const struct pki_ca *ca, const struct pki_leaf *leaf, const char *cert_path,
                    const char *key_path, struct ferry_error *err)
{
    ferry_cleanup_free char *cert_text = NULL;
    ferry_cleanup(pki_key_freep) char *key_text = NULL;
    int rc = pki_issue(ca, leaf, &cert_text, &key_text, err);

    if (rc < 0 || (rc = ferry_write_file(key_path, key_text, strlen(key_text), 0600, err)) < 0) {
        return rc;
    }
    return ferry_write_file(cert_path, cert_text, strlen(cert_text), 0644, err);
}

char *pki_node_uri(const char *node)
{
    return ferry_asprintf("ferry://node/%s", node);
}

int pki_sign_relay(const struct pki_ca *ca, const char *node, const char *generation,
                   const char *request_pem, char **ret_cert_pem, struct ferry_error *err)
{
    ferry_cleanup_free char *uri = pki_node_uri(node);
    ferry_cleanup_free char *cn = ferry_asprintf("ferry-relay:%s", node);
    const char *const uris[] = {uri, NULL};
    const struct pki_leaf leaf = {
        .common_name = cn, .generation = generation, .uris = uris, .client = true, .server = true};

    return pki_sign(ca, &leaf, request_pem, ret_cert_pem, err);
}

int pki_issue_relay_files(const struct pki_ca *ca, const char *node, const char *cert_path,
                          const char *key_path, struct ferry_error *err)
{
    ferry_cleanup_free char *uri = pki_node_uri(node);
    ferry_cleanup_free char *cn = ferry_asprintf("ferry-relay:%s", node);
    const char *const uris[] = {uri, NULL};
    const struct pki_leaf leaf = {.common_name = cn, .uris = uris, .client = true, .server = true};

    return pki_issue_files(ca, &leaf, cert_path, key_path, err);
}
