#include "apiserver/store/ident.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static void random_bytes(unsigned char *buf, size_t n)
{
    if (getrandom(buf, n, 0) != (ssize_t)n) {
        abort(); /* cannot fail for so few bytes once the system is up */
    }
}

void ident_uid(char uid[IDENT_UID_SIZE])
{
    unsigned char b[16];

    random_bytes(b, sizeof(b));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(uid, IDENT_UID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

void ident_suffix(char suffix[IDENT_SUFFIX_SIZE])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* none that make words */
    unsigned char b[IDENT_SUFFIX_SIZE - 1];

    random_bytes(b, sizeof(b));
    for (size_t i = 0; i < sizeof(b); i++) {
        suffix[i] = letters[b[i] % (sizeof(letters) - 1)];
    }
    suffix[sizeof(b)] = '\0';
}
