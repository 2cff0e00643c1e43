/* Built where there is no library beside OpenSSL. */
#include <stddef.h>

#include "tls/gcm.h"

const char *tls_gcm_properties(void)
{
    return NULL;
}

const char *tls_gcm_name(void)
{
    return "OpenSSL";
}
