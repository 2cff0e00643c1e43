/* Which certificates of a node that was removed from the site are refused. Pure.
 *
 * A node that was removed has a denial, which stays. Joining again with a token gives it a
 * generation, and the certificates that are signed for that joining, and those that renew them,
 * name it (PKI_GENERATION_PREFIX): they alone are good, whenever the others were signed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TLS_GENERATION_SIZE = 48 };

struct tls_denial {
    const char *node;
    const char *generation; /* what is good; NULL or "" = nothing is */
    /* Of a removal by an older version, which knew no generations: what began up to this second is
     * refused, and what is younger is good. 0 = none of those. */
    int64_t before_s;
};

/* A certificate of the denial's node: `generation` is what it names (NULL or "" = none), and
 * `begin_s` when it begins, both as the certificate says. */
bool tls_denial_hits(const struct tls_denial *d, const char *generation, int64_t begin_s);
