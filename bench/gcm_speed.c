/* AES-128-GCM as TLS uses it, 16 KiB at a time: bytes per second of CPU time, by OpenSSL's code and
 * by the code that the relay uses here, as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/evp.h>

#include "tls/gcm.h"

enum { RECORD = 16 * 1024 };

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void seal(EVP_CIPHER_CTX *ctx, unsigned char *record)
{
    static const unsigned char header[5] = {23, 3, 3}, nonce[12] = {1};
    unsigned char tag[16];
    int n = 0;

    if (EVP_EncryptInit_ex2(ctx, NULL, NULL, nonce, NULL) != 1 ||
        EVP_EncryptUpdate(ctx, NULL, &n, header, sizeof(header)) != 1 ||
        EVP_EncryptUpdate(ctx, record, &n, record, RECORD) != 1 ||
        EVP_EncryptFinal_ex(ctx, record, &n) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, sizeof(tag), tag) != 1) {
        abort();
    }
}

static double speed(const char *properties)
{
    static unsigned char record[RECORD];
    static const unsigned char key[16] = {2};
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, "AES-128-GCM", properties);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned long count = 0;

    if (!ctx || EVP_EncryptInit_ex2(ctx, cipher, key, NULL, NULL) != 1) {
        abort();
    }
    double begin = cpu_seconds(), took;
    do {
        for (int i = 0; i < 1000; i++, count++) {
            seal(ctx, record);
        }
        took = cpu_seconds() - begin;
    } while (took < 0.5);
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(cipher);
    return (double)count * RECORD / took;
}

int main(void)
{
    printf("{\"openssl\": %.0f, \"used\": %.0f, \"by\": \"%s\"}\n", speed("provider=default"),
           speed(tls_gcm_properties()), tls_gcm_name());
    return 0;
}
