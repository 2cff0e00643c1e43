/* Theory of operation
 *
 * An OpenSSL provider inside this program with one algorithm, AES-128-GCM as TLS 1.3 uses it: a
 * nonce of 12 bytes, little data to authenticate, tags of 16 bytes. Whatever else is asked for is
 * refused, which nobody meets: OpenSSL's default provider is loaded first and is taken by all that
 * do not ask for this one by name.
 *
 * A record is: init with a nonce, update without output (what is only authenticated), update with
 * output, final. The library wants nonce and additional data together, so both are kept until the
 * first byte of payload or the end comes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include "base/count.h"
#include "tls/gcm.h"

#define PROVIDER "ferry-gcm"

enum { KEY = 16, NONCE = 12, TAG = 16, AUTHENTICATED_MAX = 64 };

static IMB_MGR *library; /* its functions; set once, before the provider is loaded */

struct gcm {
    struct gcm_key_data key; /* first: it wants to be aligned */
    struct gcm_context_data record;
    uint8_t nonce[NONCE], tag[TAG], authenticated[AUTHENTICATED_MAX];
    size_t authenticated_len;
    bool encrypt, has_key, has_nonce, has_tag;
    bool begun; /* the library has nonce and authenticated data */
};

/* ---- one record -------------------------------------------------------------------------------
 */

static void *new_gcm(void *provider)
{
    struct gcm *g = aligned_alloc(64, (sizeof(*g) + 63) / 64 * 64);

    (void)provider;
    if (g) {
        memset(g, 0, sizeof(*g));
    }
    return g;
}

static void free_gcm(void *g)
{
    if (g) {
        OPENSSL_cleanse(g, sizeof(struct gcm));
        free(g);
    }
}

static int set_params(void *ctx, const OSSL_PARAM params[]);

static int start(struct gcm *g, bool encrypt, const unsigned char *key, size_t key_len,
                 const unsigned char *nonce, size_t nonce_len, const OSSL_PARAM params[])
{
    if ((key && key_len != KEY) || (nonce && nonce_len != NONCE)) {
        return 0;
    }
    g->encrypt = encrypt;
    if (key) {
        IMB_AES128_GCM_PRE(library, key, &g->key);
        g->has_key = true;
    }
    if (nonce) {
        memcpy(g->nonce, nonce, NONCE);
        g->has_nonce = true;
    }
    g->authenticated_len = 0;
    g->begun = g->has_tag = false;
    return set_params(g, params);
}

static int start_encrypting(void *g, const unsigned char *key, size_t key_len,
                            const unsigned char *nonce, size_t nonce_len, const OSSL_PARAM params[])
{
    return start(g, true, key, key_len, nonce, nonce_len, params);
}

static int start_decrypting(void *g, const unsigned char *key, size_t key_len,
                            const unsigned char *nonce, size_t nonce_len, const OSSL_PARAM params[])
{
    return start(g, false, key, key_len, nonce, nonce_len, params);
}

static bool begin_payload(struct gcm *g)
{
    if (!g->has_key || !g->has_nonce) {
        return false;
    }
    if (!g->begun) {
        IMB_AES128_GCM_INIT(library, &g->key, &g->record, g->nonce, g->authenticated,
                            g->authenticated_len);
        g->begun = true;
    }
    return true;
}

static int authenticate(struct gcm *g, const unsigned char *in, size_t n)
{
    if (g->begun || n > AUTHENTICATED_MAX - g->authenticated_len) {
        return 0;
    }
    memcpy(g->authenticated + g->authenticated_len, in, n);
    g->authenticated_len += n;
    return 1;
}

static int update(void *ctx, unsigned char *out, size_t *ret, size_t room, const unsigned char *in,
                  size_t n)
{
    struct gcm *g = ctx;

    *ret = n;
    if (!out) {
        return authenticate(g, in, n);
    }
    if (room < n || !begin_payload(g)) {
        return 0;
    }
    if (g->encrypt) {
        IMB_AES128_GCM_ENC_UPDATE(library, &g->key, &g->record, out, in, n);
    } else {
        IMB_AES128_GCM_DEC_UPDATE(library, &g->key, &g->record, out, in, n);
    }
    return 1;
}

/* A nonce is good for one record. */
static int final(void *ctx, unsigned char *out, size_t *ret, size_t room)
{
    struct gcm *g = ctx;
    uint8_t tag[TAG];

    (void)out;
    (void)room;
    *ret = 0;
    if (!begin_payload(g)) {
        return 0;
    }
    g->has_nonce = g->begun = false;
    if (g->encrypt) {
        IMB_AES128_GCM_ENC_FINALIZE(library, &g->key, &g->record, g->tag, TAG);
        g->has_tag = true;
        return 1;
    }
    IMB_AES128_GCM_DEC_FINALIZE(library, &g->key, &g->record, tag, TAG);
    bool same = g->has_tag && CRYPTO_memcmp(tag, g->tag, TAG) == 0;
    g->has_tag = false;
    return same;
}

/* ---- parameters -------------------------------------------------------------------------------
 */

static int set_params(void *ctx, const OSSL_PARAM params[])
{
    struct gcm *g = ctx;
    const OSSL_PARAM *p =
        params ? OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TAG) : NULL;
    size_t n = 0;

    if (p) {
        if (g->encrypt || p->data_type != OSSL_PARAM_OCTET_STRING || p->data_size != TAG ||
            !p->data) {
            return 0;
        }
        memcpy(g->tag, p->data, TAG);
        g->has_tag = true;
    }
    p = params ? OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_IVLEN) : NULL;
    if (p && (!OSSL_PARAM_get_size_t(p, &n) || n != NONCE)) {
        return 0;
    }
    p = params ? OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_KEYLEN) : NULL;
    return !p || (OSSL_PARAM_get_size_t(p, &n) && n == KEY);
}

static bool put_size(OSSL_PARAM params[], const char *name, size_t value)
{
    OSSL_PARAM *p = OSSL_PARAM_locate(params, name);

    return !p || OSSL_PARAM_set_size_t(p, value);
}

static int get_params(void *ctx, OSSL_PARAM params[])
{
    const struct gcm *g = ctx;
    OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TAG);

    if (p && (!g->encrypt || !g->has_tag || p->data_size != TAG ||
              !OSSL_PARAM_set_octet_string(p, g->tag, TAG))) {
        return 0;
    }
    return put_size(params, OSSL_CIPHER_PARAM_IVLEN, NONCE) &&
           put_size(params, OSSL_CIPHER_PARAM_KEYLEN, KEY) &&
           put_size(params, OSSL_CIPHER_PARAM_AEAD_TAGLEN, TAG);
}

static int get_constants(OSSL_PARAM params[])
{
    static const char *const flags[] = {OSSL_CIPHER_PARAM_AEAD, OSSL_CIPHER_PARAM_CUSTOM_IV};
    OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_MODE);

    if (p && !OSSL_PARAM_set_uint(p, EVP_CIPH_GCM_MODE)) {
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(flags); i++) {
        p = OSSL_PARAM_locate(params, flags[i]);
        if (p && !OSSL_PARAM_set_int(p, 1)) {
            return 0;
        }
    }
    return put_size(params, OSSL_CIPHER_PARAM_KEYLEN, KEY) &&
           put_size(params, OSSL_CIPHER_PARAM_IVLEN, NONCE) &&
           put_size(params, OSSL_CIPHER_PARAM_BLOCK_SIZE, 1);
}

static const OSSL_PARAM *settable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
        OSSL_PARAM_END,
    };

    (void)ctx;
    (void)provider;
    return list;
}

static const OSSL_PARAM *gettable(void *ctx, void *provider)
{
    static const OSSL_PARAM list[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, NULL),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, NULL),
        OSSL_PARAM_END,
    };

    (void)ctx;
    (void)provider;
    return list;
}

/* ---- the provider -----------------------------------------------------------------------------
 */

#define ENTRY(name, function)                                                                      \
    {                                                                                              \
        OSSL_FUNC_CIPHER_##name, (void (*)(void))(function)                                        \
    }

static const OSSL_DISPATCH cipher_functions[] = {
    ENTRY(NEWCTX, new_gcm),
    ENTRY(FREECTX, free_gcm),
    ENTRY(ENCRYPT_INIT, start_encrypting),
    ENTRY(DECRYPT_INIT, start_decrypting),
    ENTRY(UPDATE, update),
    ENTRY(FINAL, final),
    ENTRY(GET_PARAMS, get_constants),
    ENTRY(GET_CTX_PARAMS, get_params),
    ENTRY(SET_CTX_PARAMS, set_params),
    ENTRY(SETTABLE_CTX_PARAMS, settable),
    ENTRY(GETTABLE_CTX_PARAMS, gettable),
    {0, NULL},
};

static const OSSL_ALGORITHM *query(void *provider, int operation, int *no_cache)
{
    static const OSSL_ALGORITHM ciphers[] = {
        {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", "provider=" PROVIDER, cipher_functions,
         "AES-128-GCM by ipsec-mb"},
        {NULL, NULL, NULL, NULL},
    };

    (void)provider;
    *no_cache = 0;
    return operation == OSSL_OP_CIPHER ? ciphers : NULL;
}

static int start_provider(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
                          const OSSL_DISPATCH **out, void **provider)
{
    static const OSSL_DISPATCH functions[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
        {0, NULL},
    };

    (void)in;
    *out = functions;
    *provider = (void *)(uintptr_t)handle;
    return 1;
}

/* ---- whether ----------------------------------------------------------------------------------
 */

static const char *properties;
static OSSL_PROVIDER *openssl, *ours;

static void unload(void)
{
    OSSL_PROVIDER_unload(ours);
    OSSL_PROVIDER_unload(openssl);
}

static bool load(void)
{
    openssl = OSSL_PROVIDER_load(NULL, "default");
    if (!openssl || !OSSL_PROVIDER_add_builtin(NULL, PROVIDER, start_provider)) {
        return false;
    }
    ours = OSSL_PROVIDER_load(NULL, PROVIDER);
    return ours && atexit(unload) == 0; /* before OpenSSL's own, which came earlier */
}

static void look(void)
{
    IMB_ARCH arch;

    library = alloc_mb_mgr(0);
    if (!library) {
        return;
    }
    init_mb_mgr_auto(library, &arch);
    bool wide_aes = (library->features & IMB_CPUFLAGS_AVX512_T2) == IMB_CPUFLAGS_AVX512_T2;
    bool tested = library->features & IMB_FEATURE_SELF_TEST_PASS;

    if (tls_gcm_faster_elsewhere(OpenSSL_version_num(), wide_aes, tested) && load()) {
        properties = "?provider=" PROVIDER;
    } else {
        free_mb_mgr(library);
        library = NULL;
    }
}

const char *tls_gcm_properties(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return properties;
}

const char *tls_gcm_name(void)
{
    return tls_gcm_properties() ? "ipsec-mb " IMB_VERSION_STR : "OpenSSL";
}
