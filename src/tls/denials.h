/* The nodes that were removed, as a relay knows them: who is told replaces the list, connections
 * ask it. Any thread. */
#pragma once

#include <openssl/types.h>
#include <stddef.h>

#include "tls/denial.h"

struct tls_denials;

struct tls_denials *tls_denials_new(void);
void tls_denials_free(struct tls_denials *d);

/* Copies the list. False when it is what there was already. */
bool tls_denials_set(struct tls_denials *d, const struct tls_denial *list, size_t n);
/* Grows with every change: who remembers it sees when to ask again. 0 = nothing was set yet. */
unsigned tls_denials_version(const struct tls_denials *d);
/* A copy of the list; give it back with tls_denials_list_free(). */
size_t tls_denials_copy(struct tls_denials *d, struct tls_denial **ret);
void tls_denials_list_free(struct tls_denial *list, size_t n);
/* Whether no certificate of that node is good. */
bool tls_denials_has_all(struct tls_denials *d, const char *node);
/* Whether the certificate is a removed node's, and refused; `d` may be NULL. */
bool tls_denials_has(struct tls_denials *d, const X509 *leaf);
