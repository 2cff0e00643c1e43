/* The PKI: what certificates say, who accepts them, what lies on disk. */
#include "lib/unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/fd.h"
#include "base/str.h"
#include "tls/identity.h"
#include "tls/pki.h"

static char *dir;
static struct pki_ca *ca;

static int setup(void **state)
{
    char template[] = "/tmp/ferry-pki.XXXXXX";
    struct ferry_error err;

    (void)state;
    dir = ferry_strdup(mkdtemp(template));
    return pki_ca_open(dir, true, &ca, &err) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pki_ca_free(ca);
    ferry_remove_tree(dir, NULL);
    free(dir);
    return 0;
}

static char *path_of(const char *name)
{
    return ferry_asprintf("%s/%s", dir, name);
}

static X509 *parse(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    assert_non_null(x);
    return x;
}

static int verify(X509 *leaf, const char *ca_pem, int purpose)
{
    X509 *root = parse(ca_pem);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();

    X509_STORE_add_cert(store, root);
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_STORE_CTX_set_purpose(ctx, purpose);
    X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
    int rc = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(root);
    return rc;
}

static void test_ca_is_loaded_again(void **state)
{
    struct pki_ca *again = NULL;
    struct ferry_error err;
    struct stat st;
    ferry_cleanup_free char *key = path_of("ca.key");
    ferry_cleanup_free char *crt = path_of("ca.crt");

    (void)state;
    assert_int_equal(pki_ca_open(dir, true, &again, &err), 0);
    assert_string_equal(pki_ca_pem(again), pki_ca_pem(ca));
    pki_ca_free(again);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(crt, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
}

static void test_ca_that_is_not_there(void **state)
{
    ferry_cleanup_free char *sub = path_of("empty");
    struct pki_ca *none = NULL;
    struct ferry_error err;

    (void)state;
    assert_int_equal(pki_ca_open(sub, false, &none, &err), -FERRY_NOT_FOUND);
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(pki_ca_open(sub, false, &none, &err), -FERRY_NOT_FOUND);
    assert_non_null(strstr(err.msg, "no CA in"));
    assert_null(none);
}

static void test_lost_ca_files(void **state)
{
    char template[] = "/tmp/ferry-pki-lost.XXXXXX";
    ferry_cleanup_free char *d = ferry_strdup(mkdtemp(template));
    ferry_cleanup_free char *crt = ferry_asprintf("%s/ca.crt", d);
    ferry_cleanup_free char *key = ferry_asprintf("%s/ca.key", d);
    ferry_cleanup_free char *cert_pem = NULL;
    struct pki_leaf leaf = {.common_name = "x", .client = true};
    struct pki_ca *c = NULL;
    struct ferry_error err;
    char *key_pem = NULL;

    (void)state;
    /* The certificate can be made again, and what was issued before still verifies. */
    assert_int_equal(pki_ca_open(d, true, &c, &err), 0);
    assert_int_equal(pki_issue(c, &leaf, &cert_pem, &key_pem, &err), 0);
    pki_ca_free(c);
    assert_int_equal(unlink(crt), 0);
    assert_int_equal(pki_ca_open(d, true, &c, &err), 0);
    X509 *x = parse(cert_pem);
    assert_int_equal(verify(x, pki_ca_pem(c), X509_PURPOSE_SSL_CLIENT), X509_V_OK);
    X509_free(x);
    pki_key_free(key_pem);
    pki_ca_free(c);
    /* The key cannot. */
    c = NULL;
    assert_int_equal(unlink(key), 0);
    assert_int_equal(pki_ca_open(d, true, &c, &err), -FERRY_NOT_FOUND);
    assert_non_null(strstr(err.msg, "its key"));
    /* Nor may it be another's. */
    ferry_cleanup_free char *other = path_of("ca.key");
    struct ferry_buf b = {0};
    assert_int_equal(ferry_read_file(other, 65536, &b, &err), 0);
    assert_int_equal(ferry_write_file(key, b.data, b.len, 0600, &err), 0);
    ferry_buf_done(&b);
    assert_int_equal(pki_ca_open(d, true, &c, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "do not belong together"));
    assert_int_equal(ferry_write_file(key, "garbage\n", 8, 0600, &err), 0);
    assert_int_equal(pki_ca_open(d, true, &c, &err), -FERRY_INVALID);
    assert_non_null(strstr(err.msg, "holds no private key"));
    ferry_remove_tree(d, NULL);
}

static bool has_san(X509 *x, int type, const char *value)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool found = false;

    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        int t = 0;
        ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &t);

        found = found || (t == type && ASN1_STRING_length(s) == (int)strlen(value) &&
                          memcmp(ASN1_STRING_get0_data(s), value, strlen(value)) == 0);
    }
    GENERAL_NAMES_free(names);
    return found;
}

static void test_leaf_says_what_was_asked(void **state)
{
    const char *const orgs[] = {"system:nodes", "second", NULL};
    const char *const uris[] = {"ferry://node/n1", NULL};
    const char *const dns[] = {"localhost", "a,DNS:evil", NULL};
    const char *const ips[] = {"127.0.0.1", "fd00::1", NULL};
    const struct pki_leaf leaf = {.common_name = "system:node:n1",
                                  .organizations = orgs,
                                  .uris = uris,
                                  .dns_names = dns,
                                  .addresses = ips,
                                  .client = true,
                                  .server = true};
    ferry_cleanup_free char *cert_pem = NULL;
    char *key_pem = NULL, text[128];
    struct ferry_error err;

    (void)state;
    assert_int_equal(pki_issue(ca, &leaf, &cert_pem, &key_pem, &err), 0);
    pki_key_free(key_pem);
    X509 *x = parse(cert_pem);
    assert_string_equal(X509_NAME_oneline(X509_get_subject_name(x), text, sizeof(text)),
                        "/O=system:nodes/O=second/CN=system:node:n1");
    assert_int_equal(X509_check_host(x, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x, "evil", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(x, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "fd00::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "127.0.0.2", 0), 0);
    assert_true(has_san(x, GEN_URI, "ferry://node/n1"));
    assert_false(has_san(x, GEN_URI, "ferry://node/n"));
    assert_int_equal(X509_get_version(x), X509_VERSION_3);
    assert_true(ASN1_STRING_length(X509_get_serialNumber(x)) >= 16);
    assert_non_null(X509_get0_subject_key_id(x));
    assert_non_null(X509_get0_authority_key_id(x));
    int days = 0, secs = 0;
    assert_int_equal(ASN1_TIME_diff(&days, &secs, NULL, X509_get0_notAfter(x)), 1);
    assert_true(days == 29 || days == 30);
    X509_free(x);
}

static void test_usages_and_issuers(void **state)
{
    static const struct {
        bool client, server;
        int64_t lifetime_s;
        int purpose, expect;
    } rows[] = {
        {true, true, 0, X509_PURPOSE_SSL_CLIENT, X509_V_OK},
        {true, true, 0, X509_PURPOSE_SSL_SERVER, X509_V_OK},
        {true, false, 0, X509_PURPOSE_SSL_CLIENT, X509_V_OK},
        {true, false, 0, X509_PURPOSE_SSL_SERVER, X509_V_ERR_INVALID_PURPOSE},
        {false, true, 0, X509_PURPOSE_SSL_CLIENT, X509_V_ERR_INVALID_PURPOSE},
        {false, true, 0, X509_PURPOSE_SSL_SERVER, X509_V_OK},
        {true, true, -60, X509_PURPOSE_SSL_CLIENT, X509_V_ERR_CERT_HAS_EXPIRED},
        {true, true, 60, X509_PURPOSE_SSL_CLIENT, X509_V_OK},
    };
    char template[] = "/tmp/ferry-pki-other.XXXXXX";
    ferry_cleanup_free char *d = ferry_strdup(mkdtemp(template));
    struct pki_ca *other = NULL;
    struct ferry_error err;

    (void)state;
    assert_int_equal(pki_ca_open(d, true, &other, &err), 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct pki_leaf leaf = {.common_name = "row",
                                      .client = rows[i].client,
                                      .server = rows[i].server,
                                      .lifetime_s = rows[i].lifetime_s};
        ferry_cleanup_free char *cert_pem = NULL;
        char *key_pem = NULL;

        assert_int_equal(pki_issue(ca, &leaf, &cert_pem, &key_pem, &err), 0);
        pki_key_free(key_pem);
        X509 *x = parse(cert_pem);
        int got = verify(x, pki_ca_pem(ca), rows[i].purpose);
        if (got != rows[i].expect) {
            fail_msg("row %zu: %s", i, X509_verify_cert_error_string(got));
        }
        assert_int_not_equal(verify(x, pki_ca_pem(other), rows[i].purpose), X509_V_OK);
        X509_free(x);
    }
    pki_ca_free(other);
    ferry_remove_tree(d, NULL);
}

static void test_leaves_that_cannot_be(void **state)
{
    static const char *const bad_ip[] = {"127.0.0.1/8", NULL};
    static const struct {
        struct pki_leaf leaf;
        const char *says;
    } rows[] = {
        {{.common_name = "neither"}, "of use to someone"},
        {{.common_name = "0123456789012345678901234567890123456789012345678901234567890123x",
          .client = true},
         "cannot be the CN"},
        {{.common_name = "", .client = true}, "cannot be the CN"},
        {{.common_name = "ip", .client = true, .addresses = bad_ip}, "127.0.0.1/8"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *cert = NULL, *key = NULL;
        struct ferry_error err;

        assert_int_equal(pki_issue(ca, &rows[i].leaf, &cert, &key, &err), -FERRY_INVALID);
        if (!strstr(err.msg, rows[i].says)) {
            fail_msg("row %zu: '%s' does not say '%s'", i, err.msg, rows[i].says);
        }
        assert_null(cert);
        assert_null(key);
    }
}

static void test_relay_files(void **state)
{
    ferry_cleanup_free char *crt = path_of("relay.crt");
    ferry_cleanup_free char *key = path_of("relay.key");
    struct ferry_error err;
    struct ferry_buf b = {0};
    struct stat st;
    char text[128];

    (void)state;
    assert_int_equal(pki_issue_relay_files(ca, "node-7", crt, key, &err), 0);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(ferry_read_file(crt, 65536, &b, &err), 0);
    X509 *x = parse(b.data);
    ferry_buf_done(&b);
    assert_string_equal(X509_NAME_oneline(X509_get_subject_name(x), text, sizeof(text)),
                        "/CN=ferry-relay:node-7");
    assert_true(has_san(x, GEN_URI, "ferry://node/node-7"));
    assert_int_equal(verify(x, pki_ca_pem(ca), X509_PURPOSE_SSL_SERVER), X509_V_OK);
    X509_free(x);
    ferry_cleanup_free char *nowhere = path_of("no/such/relay.crt");
    assert_true(pki_issue_relay_files(ca, "node-7", nowhere, key, &err) < 0);
    assert_non_null(strstr(err.msg, "relay.crt"));
}

/* A relay's certificate as its own node looks at it. */
static void test_own_certificate(void **state)
{
    static const struct {
        const char *names;
        bool client, server;
        int64_t lifetime_s;
        const char *refused; /* NULL = good */
    } rows[] = {
        {"node-7", true, true, 0, NULL},
        {"node-8", true, true, 0, "node 'node-8', expected 'node-7'"},
        {"node-7", true, true, -60, "has expired"},
        {"node-7", true, false, 0, "wrong usage"},
        {"node-7", false, true, 0, "wrong usage"},
    };
    char text[TLS_IDENTITY_TEXT];
    struct ferry_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ferry_cleanup_free char *uri = pki_node_uri(rows[i].names), *cert = NULL;
        const char *uris[] = {uri, NULL};
        const struct pki_leaf leaf = {.common_name = "x",
                                      .uris = uris,
                                      .client = rows[i].client,
                                      .server = rows[i].server,
                                      .lifetime_s = rows[i].lifetime_s};
        char *key = NULL;

        assert_int_equal(pki_issue(ca, &leaf, &cert, &key, &err), 0);
        pki_key_free(key);
        int rc = tls_identity_check_own(cert, strlen(cert), "node-7", text, &err);
        if (!rows[i].refused) {
            assert_int_equal(rc, 0);
            assert_non_null(strstr(text, "names node 'node-7', good until 20"));
            continue;
        }
        assert_int_equal(rc, -FERRY_DENIED);
        if (!strstr(err.msg, rows[i].refused)) {
            fail_msg("row %zu: %s", i, err.msg);
        }
    }
    assert_int_equal(tls_identity_check_own("no", 2, "a", text, &err), -FERRY_INVALID);
    assert_int_equal(tls_identity_check_own("", 0, "a", text, &err), -FERRY_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ca_is_loaded_again), cmocka_unit_test(test_ca_that_is_not_there),
        cmocka_unit_test(test_lost_ca_files),      cmocka_unit_test(test_leaf_says_what_was_asked),
        cmocka_unit_test(test_usages_and_issuers), cmocka_unit_test(test_leaves_that_cannot_be),
        cmocka_unit_test(test_relay_files),        cmocka_unit_test(test_own_certificate),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
