/* AES-128-GCM from another library: the same bytes as OpenSSL's, in every shape, and nothing
 * forged is taken. Where this build or machine has only OpenSSL's, the choice alone is tested. */
#include "lib/unit.h"

#include <openssl/evp.h>
#include <openssl/provider.h>

#include "base/count.h"
#include "base/str.h"
#include "tls/gcm.h"

enum { NONCE = 12, TAG = 16, MOST = 16 * 1024 + 64 };

struct record {
    uint8_t aad[32], text[MOST], tag[TAG];
    size_t aad_len, len;
};

static const uint8_t key_a[16] = "sixteen letters", key_b[16] = "and sixteen more";

static void test_choice(void **state)
{
    static const struct {
        unsigned long openssl;
        bool wide_aes, tested, elsewhere;
    } rows[] = {
        {0x30000130, true, true, true},   {0x30000130, false, true, false},
        {0x30000130, true, false, false}, {0x300fffff, true, true, true},
        {0x30100000, true, true, false},  {0x30500000, true, true, false},
    };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        assert_int_equal(
            tls_gcm_faster_elsewhere(rows[i].openssl, rows[i].wide_aes, rows[i].tested),
            rows[i].elsewhere);
    }
}

static const char *other(void)
{
    if (!tls_gcm_properties()) {
        skip();
    }
    return tls_gcm_properties();
}

static EVP_CIPHER_CTX *begin(const char *properties, const uint8_t *key, bool encrypt)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", properties);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

    assert_non_null(cipher);
    assert_int_equal(EVP_CipherInit_ex2(ctx, cipher, key, NULL, encrypt, NULL), 1);
    EVP_CIPHER_free(cipher);
    return ctx;
}

static void nonce_of(unsigned n, uint8_t nonce[NONCE])
{
    memset(nonce, 7, NONCE);
    memcpy(nonce, &n, sizeof(n));
}

/* As TLS does it: in place, payload in pieces of `piece`. Returns what final said. */
static int run(EVP_CIPHER_CTX *ctx, unsigned nonce, struct record *r, size_t piece)
{
    uint8_t iv[NONCE];
    int n = 0;

    nonce_of(nonce, iv);
    assert_int_equal(EVP_CipherInit_ex2(ctx, NULL, NULL, iv, -1, NULL), 1);
    if (!EVP_CIPHER_CTX_is_encrypting(ctx)) {
        assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, r->tag), 1);
    }
    assert_int_equal(EVP_CipherUpdate(ctx, NULL, &n, r->aad, (int)r->aad_len), 1);
    for (size_t at = 0; at < r->len; at += piece) {
        size_t len = r->len - at < piece ? r->len - at : piece;

        assert_int_equal(EVP_CipherUpdate(ctx, r->text + at, &n, r->text + at, (int)len), 1);
        assert_int_equal(n, len);
    }
    int rc = EVP_CipherFinal_ex(ctx, r->text + r->len, &n);
    if (EVP_CIPHER_CTX_is_encrypting(ctx)) {
        assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, r->tag), 1);
    }
    return rc;
}

/* Opens it, but says no tag. */
static int run_without_tag(EVP_CIPHER_CTX *ctx, unsigned nonce, struct record *r)
{
    uint8_t iv[NONCE];
    int n = 0;

    nonce_of(nonce, iv);
    assert_int_equal(EVP_CipherInit_ex2(ctx, NULL, NULL, iv, -1, NULL), 1);
    assert_int_equal(EVP_CipherUpdate(ctx, NULL, &n, r->aad, (int)r->aad_len), 1);
    assert_int_equal(EVP_CipherUpdate(ctx, r->text, &n, r->text, (int)r->len), 1);
    return EVP_CipherFinal_ex(ctx, r->text + r->len, &n);
}

static void fill(struct record *r, size_t len)
{
    r->aad_len = 5;
    r->len = len;
    for (size_t i = 0; i < sizeof(r->aad); i++) {
        r->aad[i] = (uint8_t)(len + i);
    }
    for (size_t i = 0; i < len; i++) {
        r->text[i] = (uint8_t)(i * 31 + len);
    }
}

static void same_record(const struct record *a, const struct record *b, size_t len)
{
    if (memcmp(a->text, b->text, len) != 0 || memcmp(a->tag, b->tag, TAG) != 0) {
        fail_msg("another result with %zu bytes", len);
    }
}

static void test_same_as_openssl(void **state)
{
    EVP_CIPHER_CTX *theirs = begin(other(), key_a, true);
    EVP_CIPHER_CTX *ours = begin("provider=default", key_a, true);
    EVP_CIPHER_CTX *opens = begin(other(), key_a, false);
    struct record *a = ferry_xcalloc(1, sizeof(*a)), *b = ferry_xcalloc(1, sizeof(*b)),
                  *plain = ferry_xcalloc(1, sizeof(*plain));
    static const size_t pieces[] = {1, 15, 16, 17, 256, 4096, MOST};
    unsigned nonce = 0;

    (void)state;
    for (size_t len = 0; len <= 16 * 1024 + 17; len += len < 1100 || len >= 16 * 1024 ? 1 : 509) {
        size_t piece = pieces[nonce % (FERRY_COUNT(pieces))];

        fill(a, len);
        fill(b, len);
        fill(plain, len);
        assert_int_equal(run(theirs, nonce, a, piece), 1);
        assert_int_equal(run(ours, nonce, b, MOST), 1);
        same_record(a, b, len);
        assert_int_equal(run(opens, nonce, a, piece), 1);
        assert_memory_equal(a->text, plain->text, len);
        nonce++;
    }
    free(a);
    free(b);
    free(plain);
    EVP_CIPHER_CTX_free(theirs);
    EVP_CIPHER_CTX_free(ours);
    EVP_CIPHER_CTX_free(opens);
}

/* A connection renews its keys on the same context. */
static void test_another_key(void **state)
{
    EVP_CIPHER_CTX *theirs = begin(other(), key_a, true);
    EVP_CIPHER_CTX *ours = begin("provider=default", key_b, true);
    struct record *a = ferry_xcalloc(1, sizeof(*a)), *b = ferry_xcalloc(1, sizeof(*b));

    (void)state;
    fill(a, 1000);
    fill(b, 1000);
    run(theirs, 1, a, MOST);
    assert_int_equal(EVP_CipherInit_ex2(theirs, NULL, key_b, NULL, -1, NULL), 1);
    fill(a, 1000);
    run(theirs, 2, a, MOST);
    run(ours, 2, b, MOST);
    same_record(a, b, 1000);
    free(a);
    free(b);
    EVP_CIPHER_CTX_free(theirs);
    EVP_CIPHER_CTX_free(ours);
}

static void test_forged(void **state)
{
    EVP_CIPHER_CTX *seals = begin(other(), key_a, true), *opens = begin(other(), key_a, false);
    struct record *r = ferry_xcalloc(1, sizeof(*r)), *forged = ferry_xcalloc(1, sizeof(*r));

    (void)state;
    fill(r, 300);
    run(seals, 9, r, MOST);
    for (size_t bit = 0; bit < 8 * (TAG + 5 + 300); bit += 3) {
        size_t at = bit / 8;
        uint8_t *byte;

        memcpy(forged, r, sizeof(*r));
        byte = at < TAG       ? &forged->tag[at]
               : at < TAG + 5 ? &forged->aad[at - TAG]
                              : &forged->text[at - TAG - 5];
        *byte ^= (uint8_t)(1 << bit % 8);
        if (run(opens, 9, forged, MOST) == 1) {
            fail_msg("bit %zu changed, and nobody saw", bit);
        }
    }
    memcpy(forged, r, sizeof(*r));
    assert_int_not_equal(run(opens, 10, forged, MOST), 1); /* another record's nonce */
    memcpy(forged, r, sizeof(*r));
    assert_int_equal(run(opens, 9, forged, MOST), 1);
    assert_int_not_equal(run_without_tag(opens, 9, r), 1); /* the tag before was good for it */
    free(r);
    free(forged);
    EVP_CIPHER_CTX_free(seals);
    EVP_CIPHER_CTX_free(opens);
}

/* What TLS 1.3 never asks for is refused, not done wrong. */
static void test_refusals(void **state)
{
    EVP_CIPHER_CTX *ctx = begin(other(), key_a, true), *opens = begin(other(), key_a, false);
    uint8_t aad[65] = {0}, out[64], iv[NONCE] = {1};
    int n = 0;

    (void)state;
    assert_int_not_equal(EVP_EncryptUpdate(ctx, out, &n, aad, 16), 1); /* no nonce */
    assert_int_not_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, 16, NULL), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, NONCE, NULL), 1);
    assert_int_equal(EVP_CipherInit_ex2(ctx, NULL, NULL, iv, -1, NULL), 1);
    assert_int_not_equal(EVP_EncryptUpdate(ctx, NULL, &n, aad, sizeof(aad)), 1);
    assert_int_not_equal(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, out), 1);
    assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, aad, 16), 1);
    assert_int_not_equal(EVP_EncryptUpdate(ctx, NULL, &n, aad, 1), 1); /* too late */
    assert_int_equal(EVP_EncryptFinal_ex(ctx, out, &n), 1);
    assert_int_not_equal(EVP_EncryptUpdate(ctx, out, &n, aad, 16), 1); /* the same nonce again */

    assert_int_equal(EVP_CipherInit_ex2(opens, NULL, NULL, iv, -1, NULL), 1);
    assert_int_not_equal(EVP_CIPHER_CTX_ctrl(opens, EVP_CTRL_AEAD_SET_TAG, 12, out), 1);
    assert_int_equal(EVP_DecryptUpdate(opens, out, &n, aad, 16), 1);
    assert_int_not_equal(EVP_DecryptFinal_ex(opens, out, &n), 1); /* no tag */
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_CTX_free(opens);
}

/* Others in this program get OpenSSL's own, as if nothing were there. */
static void test_only_when_asked(void **state)
{
    EVP_CIPHER *asked = EVP_CIPHER_fetch(NULL, "AES-128-GCM", other());
    EVP_CIPHER *not_asked = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);

    (void)state;
    assert_string_equal(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(asked)), "ferry-gcm");
    assert_string_equal(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(not_asked)), "default");
    EVP_CIPHER_free(asked);
    EVP_CIPHER_free(not_asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),      cmocka_unit_test(test_same_as_openssl),
        cmocka_unit_test(test_another_key), cmocka_unit_test(test_forged),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_only_when_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
