#include "tls/denial.h"

#include "base/str.h"
#include "tls/pki.h"

bool tls_denial_hits(const struct tls_denial *d, const char *generation, int64_t begin_s)
{
    if (!ferry_str_empty(d->generation)) {
        return !ferry_streq(d->generation, generation);
    }
    return d->before_s == 0 || begin_s + PKI_BACKDATE_S <= d->before_s;
}
