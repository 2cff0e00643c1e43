/* One TLS connection over a non-blocking socket, between two relays that know each other by name.
 *
 * Nothing here waits: each call does what it can and says what the socket must become ready for.
 * A connection belongs to one thread at a time. Half-close works as on a socket: a peer's
 * close_notify is the end of what it sends, and the other direction goes on. OpenSSL writes
 * with write(), so the program must ignore SIGPIPE. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "tls/credentials.h"
#include "tls/identity.h"

struct tls_conn;

enum tls_io {
    TLS_OK,
    TLS_WANT_READ,  /* call again when the socket is readable */
    TLS_WANT_WRITE, /* call again, with the same or more data, when it is writable */
    TLS_EOF,        /* tls_conn_read only: the peer has sent all it will send */
    TLS_FAILED,     /* `err` is set; the connection is of no more use */
};

/* `fd` is borrowed and must outlive the connection. The peer must be the relay of `peer_node`. */
int tls_conn_new(struct tls_credentials *credentials, enum tls_role role, int fd,
                 const char *peer_node, struct tls_conn **ret, struct ferry_error *err);
/* Sends nothing: a peer that saw no close_notify knows that this was not the end of the data. */
void tls_conn_free(struct tls_conn *c);

/* Until TLS_OK: then the peer's identity is proven on a server. A client has the server's proof,
 * but learns only from its first read or write whether the server accepted its own certificate. */
enum tls_io tls_conn_handshake(struct tls_conn *c, struct ferry_error *err);

/* TLS_OK: between 1 and `n` bytes, the number in `*ret_n`. Read until TLS_WANT_READ before waiting
 * for the socket: decrypted bytes may be waiting where poll() does not see them. */
enum tls_io tls_conn_read(struct tls_conn *c, void *buf, size_t n, size_t *ret_n,
                          struct ferry_error *err);
enum tls_io tls_conn_write(struct tls_conn *c, const void *buf, size_t n, size_t *ret_n,
                           struct ferry_error *err);
/* Ends this side's data (close_notify). Reading goes on. Until TLS_OK. */
enum tls_io tls_conn_close_send(struct tls_conn *c, struct ferry_error *err);
