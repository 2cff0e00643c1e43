#include "apiserver/store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* What is stored: MAGIC, nonce, ciphertext, tag. */
#define MAGIC "FERRY-SEAL-1"
enum { MAGIC_BYTES = sizeof(MAGIC) - 1, KEY_BYTES = 32, NONCE_BYTES = 12, TAG_BYTES = 16 };

struct seal {
    unsigned char key[KEY_BYTES];
    char *path;
};

FERRY_DEFINE_CLEANUP(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)

static int make_key(const char *path, struct ferry_error *err)
{
    unsigned char key[KEY_BYTES];

    if (RAND_priv_bytes(key, sizeof(key)) != 1) {
        return ferry_fail(err, FERRY_FATAL, "no random bytes for %s", path);
    }
    int rc = ferry_write_file(path, key, sizeof(key), 0600, err);
    OPENSSL_cleanse(key, sizeof(key));
    return rc;
}

int seal_open(const char *path, bool make, struct seal **ret, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf key = {0};

    if (access(path, F_OK) < 0 && errno == ENOENT) {
        if (!make) {
            return ferry_fail(
                err, FERRY_INVALID,
                "%s is missing: without it the Secrets in the database cannot be read", path);
        }
        int rc = make_key(path, err);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = ferry_read_file(path, 4096, &key, err);
    if (rc < 0) {
        return rc;
    }
    if (key.len != KEY_BYTES) {
        rc = ferry_fail(err, FERRY_INVALID, "%s: a key has %d bytes, not %zu", path, KEY_BYTES,
                        key.len);
    } else {
        *ret = ferry_xcalloc(1, sizeof(**ret));
        memcpy((*ret)->key, key.data, KEY_BYTES);
        (*ret)->path = ferry_strdup(path);
    }
    if (key.data) {
        OPENSSL_cleanse(key.data, key.len);
    }
    return rc;
}

void seal_close(struct seal *s)
{
    if (s) {
        OPENSSL_cleanse(s->key, sizeof(s->key));
        free(s->path);
        free(s);
    }
}

int seal_encrypt(const struct seal *s, const char *about, const char *text, size_t n,
                 struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup(EVP_CIPHER_CTX_freep) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    size_t begin = ret->len;
    int out = 0;

    ferry_buf_reserve(ret, MAGIC_BYTES + NONCE_BYTES + n + TAG_BYTES + 1);
    unsigned char *nonce = (unsigned char *)ret->data + begin + MAGIC_BYTES;
    unsigned char *body = nonce + NONCE_BYTES;
    memcpy(ret->data + begin, MAGIC, MAGIC_BYTES);
    if (!c || n > INT32_MAX || RAND_bytes(nonce, NONCE_BYTES) != 1 ||
        EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, s->key, nonce) != 1 ||
        EVP_EncryptUpdate(c, NULL, &out, (const unsigned char *)about, (int)strlen(about)) != 1 ||
        EVP_EncryptUpdate(c, body, &out, (const unsigned char *)text, (int)n) != 1 ||
        EVP_EncryptFinal_ex(c, body + out, &out) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, body + n) != 1) {
        return ferry_fail(err, FERRY_FATAL, "encrypting %s", about);
    }
    ret->len = begin + MAGIC_BYTES + NONCE_BYTES + n + TAG_BYTES;
    return 0;
}

int seal_decrypt(const struct seal *s, const char *about, const void *sealed, size_t n,
                 struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup(EVP_CIPHER_CTX_freep) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const unsigned char *nonce = (const unsigned char *)sealed + MAGIC_BYTES;
    const unsigned char *body = nonce + NONCE_BYTES;
    int out = 0;

    if (n < MAGIC_BYTES + NONCE_BYTES + TAG_BYTES || n > INT32_MAX ||
        memcmp(sealed, MAGIC, MAGIC_BYTES) != 0) {
        return ferry_fail(err, FERRY_INVALID, "%s is not in a form that this program knows", about);
    }
    size_t len = n - MAGIC_BYTES - NONCE_BYTES - TAG_BYTES;
    ferry_buf_reserve(ret, len + 1);
    unsigned char *to = (unsigned char *)ret->data + ret->len;
    if (!c || EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, s->key, nonce) != 1 ||
        EVP_DecryptUpdate(c, NULL, &out, (const unsigned char *)about, (int)strlen(about)) != 1 ||
        EVP_DecryptUpdate(c, to, &out, body, (int)len) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, (void *)(uintptr_t)(body + len)) !=
            1 ||
        EVP_DecryptFinal_ex(c, to + out, &out) != 1) {
        return ferry_fail(err, FERRY_INVALID, "%s cannot be decrypted with %s", about, s->path);
    }
    ret->len += len;
    ret->data[ret->len] = '\0';
    return 0;
}
