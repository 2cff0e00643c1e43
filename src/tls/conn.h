/* One TLS connection over a non-blocking socket, between two relays that know each other by name;
 * or, asked for, one without TLS that is used in the same way.
 *
 * Nothing here waits: each call does what it can and says what the socket must become ready for.
 * A connection belongs to one thread at a time. Half-close works as on a socket: a peer's
 * close_notify is the end of what it sends, and the other direction goes on. What is written is
 * collected and goes out with tls_conn_flush().
 *
 * A key of AES-GCM is good for some 2^24.5 full records (RFC 8446, 5.5), which a fast stream has
 * sent within minutes. Each side renews its own key in time; a peer that does not is asked to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tls/credentials.h"
#include "tls/identity.h"

#define TLS_FERRY_PROTOCOL "ferry/1"

struct tls_conn;

enum tls_io {
    TLS_OK,
    TLS_WANT_READ,  /* call again when the socket is readable */
    TLS_WANT_WRITE, /* call again, with the same or more data, when it is writable */
    TLS_EOF,        /* tls_conn_read only: the peer has sent all it will send */
    TLS_FAILED,     /* `err` is set; the connection is of no more use */
};

struct tls_conn_config {
    struct tls_credentials *credentials; /* NULL: no TLS */
    enum tls_role role;
    int fd;               /* borrowed, must outlive the connection */
    struct tls_name peer; /* who must be at the other end */
    /* What both sides must name in the handshake (ALPN), or NULL: then a client that names
     * TLS_FERRY_PROTOCOL is refused. There is no falling back from one to the other. */
    const char *protocol;
    uint64_t renew_after; /* records under one key, at most about; 0: as many as are safe */
};

/* Makes a context fit for tls_conn_new(). */
void tls_conn_prepare(SSL_CTX *ctx);

int tls_conn_new(const struct tls_conn_config *config, struct tls_conn **ret,
                 struct ferry_error *err);
/* Sends nothing: a peer that saw no close_notify knows that this was not the end of the data. */
void tls_conn_free(struct tls_conn *c);

/* Until TLS_OK: then the peer's identity is proven on a server. A client has the server's proof,
 * but learns only from its first read or write whether the server accepted its own certificate.
 * DENIED: a certificate or protocol was refused, by this side or the other. */
enum tls_io tls_conn_handshake(struct tls_conn *c, struct ferry_error *err);

/* TLS_OK: between 1 and `n` bytes, the number in `*ret_n`. Read until TLS_WANT_READ before waiting
 * for the socket: decrypted bytes may be waiting where poll() does not see them. A TLS_WANT_READ
 * may be out of date by bytes that have just arrived; poll() then knows. */
enum tls_io tls_conn_read(struct tls_conn *c, void *buf, size_t n, size_t *ret_n,
                          struct ferry_error *err);
/* Takes between 1 and `n` bytes to be sent. */
enum tls_io tls_conn_write(struct tls_conn *c, const void *buf, size_t n, size_t *ret_n,
                           struct ferry_error *err);
/* Until TLS_OK: all that was written is with the kernel. */
enum tls_io tls_conn_flush(struct tls_conn *c, struct ferry_error *err);
/* Bytes that wait for tls_conn_flush(). */
size_t tls_conn_unsent(const struct tls_conn *c);
/* Ends this side's data (close_notify), after flushing. Reading goes on. Until TLS_OK. */
enum tls_io tls_conn_close_send(struct tls_conn *c, struct ferry_error *err);
/* Whether the peer, who was accepted, would be refused by now: its node was removed. */
bool tls_conn_is_denied(const struct tls_conn *c);
/* Gives back the memory of an idle connection. */
void tls_conn_trim(struct tls_conn *c);
