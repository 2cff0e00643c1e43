#include "api/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* The library takes blanks and surplus padding for something; nobody who writes base64 does. */
static bool is_strict(const char *text, size_t len)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t digits = strspn(text, alphabet);

    return len % 4 == 0 && len - digits <= 2 && strspn(text + digits, "=") == len - digits;
}

bool api_base64_decode(const char *text, size_t len, char **ret, size_t *ret_n)
{
    if (len > INT_MAX / 2) {
        return false;
    }
    ferry_cleanup_free char *plain = ferry_xcalloc(1, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n' && text[i] != '\r') {
            plain[n++] = text[i];
        }
    }
    if (!is_strict(plain, n)) {
        return false;
    }
    unsigned char *out = ferry_xcalloc(1, n / 4 * 3 + 1);
    int got = EVP_DecodeBlock(out, (const unsigned char *)plain, (int)n);
    if (got < 0) {
        free(out);
        return false;
    }
    *ret = (char *)out;
    *ret_n = n ? (size_t)got - (plain[n - 1] == '=') - (plain[n - 2] == '=') : 0;
    return true;
}
