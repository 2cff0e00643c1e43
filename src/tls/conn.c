#include "tls/conn.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tls/denials.h"
#include "tls/sslerr.h"
#include "tls/wire.h"

struct tls_conn {
    struct tls_wire wire;
    SSL *ssl; /* NULL: no TLS */
    char *peer_node, *peer_cn, *protocol;
    enum tls_role peer_role;
    struct tls_denials *denials; /* borrowed, or NULL */
    struct ferry_error refusal;  /* cls FERRY_OK until the peer was refused */
    uint64_t renew_after;
    uint64_t written, read; /* records since the key was renewed, or asked to be */
    bool write_waits;       /* OpenSSL holds a record that is to be written first */
};

#define RENEW_AFTER (UINT64_C(1) << 24)
enum { RECORD = SSL3_RT_MAX_PLAIN_LENGTH };

FERRY_DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
FERRY_DEFINE_CLEANUP(struct tls_conn *, tls_conn_free)

/* ---- identity ---------------------------------------------------------------------------------
 */

static struct tls_name expected(const struct tls_conn *c)
{
    return (struct tls_name){.node = c->peer_node, .common_name = c->peer_cn};
}

static void refuse(struct ferry_error *err, enum tls_refusal why, const X509 *cert,
                   const struct tls_conn *c)
{
    struct tls_name name = expected(c);

    tls_identity_refuse(err, why, cert, c->peer_role, &name);
    ferry_wrap(err, "peer refused");
}

/* Runs inside the handshake, for each certificate of the chain, the leaf last: a refused peer gets
 * an alert and never a finished handshake. */
static int verify_step(int good, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_conn *c = SSL_get_app_data(ssl);
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    struct tls_name name = expected(c);
    enum tls_refusal why = TLS_ACCEPTED;

    if (!good) {
        why = tls_identity_of_verify(X509_STORE_CTX_get_error(store));
        why = why == TLS_ACCEPTED ? TLS_BROKEN : why;
    } else if (X509_STORE_CTX_get_error_depth(store) == 0) {
        why = tls_identity_check(cert, c->peer_role, &name);
        why = why == TLS_ACCEPTED && tls_denials_has(c->denials, cert) ? TLS_REMOVED : why;
        if (why != TLS_ACCEPTED) {
            X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
        }
    }
    if (why == TLS_ACCEPTED) {
        return 1;
    }
    refuse(&c->refusal, why, cert, c);
    return 0;
}

/* ---- protocol ---------------------------------------------------------------------------------
 */

/* Whether the list of an ALPN extension has `name`. */
static bool list_has(const unsigned char *list, size_t n, const char *name)
{
    for (size_t at = 0; at < n && at + 1 + list[at] <= n; at += 1 + (size_t)list[at]) {
        if (list[at] == strlen(name) && memcmp(list + at + 1, name, list[at]) == 0) {
            return true;
        }
    }
    return false;
}

/* A client that does not want what this side speaks is turned away before anything else. */
static int hello_step(SSL *ssl, int *alert, void *arg)
{
    struct tls_conn *c = SSL_get_app_data(ssl);
    const unsigned char *ext = NULL;
    size_t n = 0;
    bool any = SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
                                         &ext, &n) == 1 &&
               n > 2;
    bool same = any && list_has(ext + 2, n - 2, c->protocol ? c->protocol : TLS_FERRY_PROTOCOL);

    (void)arg;
    if (same == (c->protocol != NULL)) {
        return SSL_CLIENT_HELLO_SUCCESS;
    }
    ferry_fail(&c->refusal, FERRY_DENIED,
               c->protocol ? "peer refused: it does not offer " TLS_FERRY_PROTOCOL
                             ", and this side speaks nothing else here"
                           : "peer refused: it wants " TLS_FERRY_PROTOCOL
                             ", and this side speaks raw TLS here");
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
}

static int select_step(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *arg)
{
    const struct tls_conn *c = SSL_get_app_data(ssl);

    (void)arg;
    if (!c->protocol || !list_has(in, in_len, c->protocol)) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *out = (const unsigned char *)c->protocol;
    *out_len = (unsigned char)strlen(c->protocol);
    return SSL_TLSEXT_ERR_OK;
}

static bool offer(SSL *ssl, const char *protocol)
{
    unsigned char list[32];
    size_t n = strlen(protocol);

    if (n + 1 > sizeof(list)) {
        return false;
    }
    list[0] = (unsigned char)n;
    memcpy(list + 1, protocol, n);
    return SSL_set_alpn_protos(ssl, list, (unsigned)n + 1) == 0;
}

/* A server that knows nothing of the protocol leaves the offer unanswered. */
static enum tls_io check_selected(const struct tls_conn *c, struct ferry_error *err)
{
    const unsigned char *name = NULL;
    unsigned n = 0;

    if (!c->protocol) {
        return TLS_OK;
    }
    SSL_get0_alpn_selected(c->ssl, &name, &n);
    if (n == strlen(c->protocol) && memcmp(name, c->protocol, n) == 0) {
        return TLS_OK;
    }
    ferry_fail(err, FERRY_DENIED, "peer refused: it does not speak %s", c->protocol);
    return TLS_FAILED;
}

/* ---- results ----------------------------------------------------------------------------------
 */

static void fail_alert(const struct tls_conn *c, int alert, struct ferry_error *err)
{
    const char *more = "";

    if (alert == SSL_AD_NO_APPLICATION_PROTOCOL) {
        more = c->protocol ? " (it does not speak " TLS_FERRY_PROTOCOL ")"
                           : " (it speaks " TLS_FERRY_PROTOCOL ", not raw TLS)";
    }
    ferry_fail(err, FERRY_DENIED, "the peer refused this side: alert '%s'%s",
               SSL_alert_desc_string_long(alert), more);
}

/* The first bytes of the peer were no TLS record. */
static bool speaks_no_tls(const struct tls_conn *c, int reason)
{
    return !SSL_is_init_finished(c->ssl) &&
           (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
            reason == SSL_R_PACKET_LENGTH_TOO_LONG);
}

static enum tls_io fail_protocol(struct tls_conn *c, struct ferry_error *err)
{
    int reason = ERR_GET_REASON(ERR_peek_last_error());

    if (c->refusal.cls != FERRY_OK) {
        ERR_clear_error();
        if (err) {
            *err = c->refusal;
        }
    } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        ERR_clear_error();
        refuse(err, TLS_NO_CERTIFICATE, NULL, c);
    } else if (speaks_no_tls(c, reason)) {
        ERR_clear_error();
        ferry_fail(err, FERRY_DENIED, "peer refused: it does not speak TLS, and this side does");
    } else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        ERR_clear_error();
        ferry_fail(err, FERRY_PEER, "the peer closed the connection in the middle of the data");
    } else if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
        ERR_clear_error();
        fail_alert(c, reason - SSL_AD_REASON_OFFSET, err);
    } else {
        sslerr_fail(err, FERRY_PEER, "TLS");
    }
    return TLS_FAILED;
}

static enum tls_io fail_socket(const struct tls_conn *c, struct ferry_error *err)
{
    ferry_fail_errno(err, c->wire.error ? c->wire.error : ECONNRESET, "connection to the peer");
    return TLS_FAILED;
}

static enum tls_io result(struct tls_conn *c, int rc, struct ferry_error *err)
{
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_EOF;
    case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        return fail_socket(c, err);
    default:
        return fail_protocol(c, err);
    }
}

/* ---- the connection ---------------------------------------------------------------------------
 */

/* A peer that renews its key by itself shows here. */
static void message_step(int write_p, int version, int type, const void *buf, size_t n, SSL *ssl,
                         void *arg)
{
    struct tls_conn *c = SSL_get_app_data(ssl);

    (void)version;
    (void)arg;
    if (!write_p && type == SSL3_RT_HANDSHAKE && n > 0 &&
        *(const unsigned char *)buf == SSL3_MT_KEY_UPDATE) {
        c->read = 0;
    }
}

static int start_tls(struct tls_conn *c, const struct tls_conn_config *config,
                     struct ferry_error *err)
{
    ferry_cleanup(SSL_CTX_freep) SSL_CTX *ctx = NULL;
    int rc = tls_credentials_context(config->credentials, &ctx, err);

    if (rc < 0) {
        return rc;
    }
    BIO *bio = tls_wire_bio(&c->wire);
    c->ssl = bio ? SSL_new(ctx) : NULL;
    if (!c->ssl) {
        BIO_free(bio);
        return sslerr_fail(err, FERRY_RETRY, "making a TLS connection");
    }
    SSL_set_bio(c->ssl, bio, bio);
    if (SSL_set_app_data(c->ssl, c) != 1 ||
        (config->role == TLS_CLIENT && c->protocol && !offer(c->ssl, c->protocol))) {
        return sslerr_fail(err, FERRY_RETRY, "making a TLS connection");
    }
    SSL_set_msg_callback(c->ssl, message_step);
    SSL_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify_step);
    if (config->role == TLS_CLIENT) {
        SSL_set_connect_state(c->ssl);
    } else {
        SSL_set_accept_state(c->ssl);
    }
    return 0;
}

void tls_conn_prepare(SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, hello_step, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, select_step, NULL);
}

int tls_conn_new(const struct tls_conn_config *config, struct tls_conn **ret,
                 struct ferry_error *err)
{
    ferry_cleanup(tls_conn_freep) struct tls_conn *c = ferry_xcalloc(1, sizeof(*c));

    c->wire.fd = config->fd;
    c->peer_node = ferry_strdup(config->peer.node);
    c->peer_cn = ferry_strdup(config->peer.common_name);
    c->protocol = ferry_strdup(config->protocol);
    c->peer_role = config->role == TLS_CLIENT ? TLS_SERVER : TLS_CLIENT;
    c->renew_after = config->renew_after ? config->renew_after : RENEW_AFTER;
    c->denials = config->credentials ? tls_credentials_denials(config->credentials) : NULL;
    int rc = config->credentials ? start_tls(c, config, err) : 0;
    if (rc < 0) {
        return rc;
    }
    *ret = ferry_take_ptr(c);
    return 0;
}

bool tls_conn_is_denied(const struct tls_conn *c)
{
    return c->ssl && tls_denials_has(c->denials, SSL_get0_peer_certificate(c->ssl));
}

void tls_conn_free(struct tls_conn *c)
{
    if (c) {
        SSL_free(c->ssl);
        tls_wire_done(&c->wire);
        free(c->peer_node);
        free(c->peer_cn);
        free(c->protocol);
        free(c);
    }
}

/* What an earlier call left behind must not be taken for this one's. Clearing is not cheap, and
 * there is nearly always nothing to clear. */
static void forget_errors(void)
{
    if (ERR_peek_error() != 0) {
        ERR_clear_error();
    }
}

/* The peer cannot answer what it has not got. */
static enum tls_io flush_then_read(struct tls_conn *c, struct ferry_error *err)
{
    enum tls_io io = tls_conn_flush(c, err);

    return io == TLS_OK ? TLS_WANT_READ : io;
}

enum tls_io tls_conn_handshake(struct tls_conn *c, struct ferry_error *err)
{
    if (!c->ssl) {
        return TLS_OK;
    }
    forget_errors();
    int rc = SSL_do_handshake(c->ssl);
    c->wire.drained = false; /* the next call need not come after a wait */
    if (rc == 1) {
        return check_selected(c, err);
    }
    enum tls_io io = result(c, rc, err);
    return io == TLS_WANT_READ ? flush_then_read(c, err) : io;
}

/* Keys are renewed by the next call that reads or writes. Reading counts calls, which are at least
 * as many as records; the peer gets a quarter more before it is asked, so that one that renews its
 * own key in time is not. After close_notify nothing may be sent any more. */
static void renew_keys(struct tls_conn *c)
{
    bool ask = c->read >= c->renew_after + c->renew_after / 4;

    if ((!ask && c->written < c->renew_after) || c->write_waits || tls_wire_ready(&c->wire) <= 0 ||
        SSL_get_shutdown(c->ssl) & SSL_SENT_SHUTDOWN ||
        SSL_key_update(c->ssl, ask ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) !=
            1) {
        return;
    }
    c->written = 0;
    c->read = ask ? 0 : c->read;
}

enum tls_io tls_conn_read(struct tls_conn *c, void *buf, size_t n, size_t *ret_n,
                          struct ferry_error *err)
{
    if (c->ssl) {
        forget_errors();
        renew_keys(c);
        int rc = SSL_read_ex(c->ssl, buf, n, ret_n);
        c->read += rc == 1;
        return rc == 1 ? TLS_OK : result(c, rc, err);
    }
    ssize_t got;
    do {
        got = recv(c->wire.fd, buf, n, 0);
    } while (got < 0 && errno == EINTR);
    *ret_n = got > 0 ? (size_t)got : 0;
    if (got >= 0) {
        return got > 0 ? TLS_OK : TLS_EOF;
    }
    c->wire.error = errno;
    return errno == EAGAIN ? TLS_WANT_READ : fail_socket(c, err);
}

static enum tls_io write_plain(struct tls_conn *c, const void *buf, size_t n, size_t *ret_n,
                               struct ferry_error *err)
{
    ssize_t sent;

    do {
        sent = send(c->wire.fd, buf, n, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    *ret_n = sent > 0 ? (size_t)sent : 0;
    if (sent >= 0) {
        return TLS_OK;
    }
    c->wire.error = errno;
    return errno == EAGAIN ? TLS_WANT_WRITE : fail_socket(c, err);
}

enum tls_io tls_conn_write(struct tls_conn *c, const void *buf, size_t n, size_t *ret_n,
                           struct ferry_error *err)
{
    if (!c->ssl) {
        return write_plain(c, buf, n, ret_n, err);
    }
    /* A record that OpenSSL has to keep for want of room makes it fail when the peer's next message
     * is about keys. */
    int ready = tls_wire_ready(&c->wire);
    if (ready <= 0) {
        *ret_n = 0;
        return ready < 0 ? fail_socket(c, err) : TLS_WANT_WRITE;
    }
    forget_errors();
    renew_keys(c);
    int rc = SSL_write_ex(c->ssl, buf, n, ret_n);
    c->write_waits = rc != 1;
    c->written += rc == 1 ? (*ret_n + RECORD - 1) / RECORD : 0;
    return rc == 1 ? TLS_OK : result(c, rc, err);
}

enum tls_io tls_conn_flush(struct tls_conn *c, struct ferry_error *err)
{
    int rc = tls_wire_flush(&c->wire);

    if (rc < 0) {
        return fail_socket(c, err);
    }
    return rc > 0 ? TLS_OK : TLS_WANT_WRITE;
}

size_t tls_conn_unsent(const struct tls_conn *c)
{
    return c->wire.out.len;
}

enum tls_io tls_conn_close_send(struct tls_conn *c, struct ferry_error *err)
{
    if (!c->ssl) {
        (void)shutdown(c->wire.fd,
                       SHUT_WR); /* fails only when the peer has left: seen by reading */
        return TLS_OK;
    }
    forget_errors();
    if (SSL_in_init(c->ssl)) { /* a key is being renewed: no end in the middle of that */
        int rc = SSL_do_handshake(c->ssl);

        if (rc != 1) {
            return result(c, rc, err);
        }
    }
    /* 0: ours is out, the peer's has not come. Calling again then would read, so we do not. */
    int rc = SSL_get_shutdown(c->ssl) & SSL_SENT_SHUTDOWN ? 0 : SSL_shutdown(c->ssl);
    return rc >= 0 ? tls_conn_flush(c, err) : result(c, rc, err);
}

void tls_conn_trim(struct tls_conn *c)
{
    tls_wire_trim(&c->wire);
}
