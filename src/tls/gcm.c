#include "tls/gcm.h"

bool tls_gcm_faster_elsewhere(unsigned long openssl, bool wide_aes, bool tested)
{
    enum { FIRST_WITH_WIDE_AES = 0x30100000 };

    return openssl < FIRST_WITH_WIDE_AES && wide_aes && tested;
}
