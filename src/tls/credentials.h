/* A relay's CA, certificate and key on disk, as ready TLS contexts.
 *
 * TLS 1.3 only, both sides show a certificate, no session resumption. The files are looked at each
 * time a connection is made and read again when inode, size or time of one has changed; while they
 * do not fit together (a rotation half done) the former ones stay in use. Connections that are open
 * go on with what they began with. Any thread. */
#pragma once

#include <stdbool.h>

#include <openssl/types.h>

#include "base/error.h"

struct tls_credentials;

struct tls_credentials_files {
    const char *ca, *cert, *key;   /* PEM; the CA file may hold several certificates */
    const char *node;              /* that the certificate must name; NULL = any */
    bool client_only, server_only; /* what the certificate need not be good for is not looked at */
};

/* Takes hold of the directories that the files are in, and reads nothing yet: a program that starts
 * as root does this before it gives up its privileges, so that only the files themselves and their
 * own directory must be open to it afterwards. */
int tls_credentials_new(const struct tls_credentials_files *files, struct tls_credentials **ret,
                        struct ferry_error *err);
void tls_credentials_free(struct tls_credentials *c);

/* Reads the files now, so that what is wrong with them is known at the start. */
int tls_credentials_load(struct tls_credentials *c, struct ferry_error *err);

struct tls_denials;
/* Peers that are in the list are refused, and so are those that come into it later. Before the
 * first connection; borrowed for as long as connections are made. */
void tls_credentials_deny(struct tls_credentials *c, struct tls_denials *denials);
struct tls_denials *tls_credentials_denials(const struct tls_credentials *c); /* or NULL */

/* The context for a new connection; give it back with SSL_CTX_free(). */
int tls_credentials_context(struct tls_credentials *c, SSL_CTX **ret, struct ferry_error *err);
