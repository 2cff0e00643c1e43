#include "api/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* The library takes blanks and surplus padding for something; nobody who writes base64 does. */
bool api_base64_valid(const char *text, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0, padding = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' || text[i] == '\n') {
            continue;
        }
        if (text[i] == '=' ? ++padding > 2
                           : padding || !memchr(digits, text[i], sizeof(digits) - 1)) {
            return false;
        }
        n++;
    }
    return n % 4 == 0;
}

bool api_base64_decode(const char *text, size_t len, char **ret, size_t *ret_n)
{
    if (len > INT_MAX / 2 || !api_base64_valid(text, len)) {
        return false;
    }
    ferry_cleanup_free char *plain = ferry_xcalloc(1, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && text[i] != '\r') {
            plain[n++] = text[i];
        }
    }
    size_t padding = 0;
    while (padding < n && plain[n - 1 - padding] == '=') {
        padding++;
    }
    unsigned char *out = ferry_xcalloc(1, n / 4 * 3 + 1);
    int got = EVP_DecodeBlock(out, (const unsigned char *)plain, (int)n);
    explicit_bzero(plain, n); /* it may be a key */
    if (got < 0) {
        free(out);
        return false;
    }
    *ret = (char *)out;
    *ret_n = (size_t)got - padding;
    out[*ret_n] = '\0';
    return true;
}
