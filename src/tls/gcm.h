/* Which code does AES-128-GCM on bulk connections.
 *
 * TLS is OpenSSL's throughout; only the cipher may be another's. OpenSSL before 3.1 leaves the wide
 * AES instructions of newer CPUs unused; Intel's ipsec-mb library, where it was there at build
 * time, knows them and needs a third of the CPU time. It is put beside OpenSSL's own as a provider.
 */
#pragma once

#include <stdbool.h>

/* Whether the other library is faster than this OpenSSL (as OpenSSL_version_num() says it) here.
 * `wide_aes`: it knows the CPU's wide instructions; `tested`: it tried itself out without a fault.
 */
bool tls_gcm_faster_elsewhere(unsigned long openssl, bool wide_aes, bool tested);

/* Property query for contexts of bulk connections; NULL: OpenSSL's own code is used. Looks at the
 * machine once, on the first call. */
const char *tls_gcm_properties(void);
/* For people: "OpenSSL" or the library's name and version. */
const char *tls_gcm_name(void);
