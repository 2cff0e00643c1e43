#include "tls/conn.h"

#include <errno.h>
#include <limits.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "tls/sslerr.h"

struct tls_conn {
    SSL *ssl;
    char *peer_node;
    enum tls_role peer_role;
    struct ferry_error refusal; /* cls FERRY_OK until the peer's certificate was refused */
};

FERRY_DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free)
FERRY_DEFINE_CLEANUP(struct tls_conn *, tls_conn_free)

/* ---- identity ---------------------------------------------------------------------------------
 */

static void refuse(struct ferry_error *err, enum tls_refusal why, const X509 *cert,
                   const struct tls_conn *c)
{
    tls_identity_refuse(err, why, cert, c->peer_role, c->peer_node);
    ferry_wrap(err, "peer refused");
}

/* Runs inside the handshake, for each certificate of the chain, the leaf last: a refused peer gets
 * an alert and never a finished handshake. */
static int verify_step(int good, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_conn *c = SSL_get_app_data(ssl);
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    enum tls_refusal why = TLS_ACCEPTED;

    if (!good) {
        why = tls_identity_of_verify(X509_STORE_CTX_get_error(store));
        why = why == TLS_ACCEPTED ? TLS_BROKEN : why;
    } else if (X509_STORE_CTX_get_error_depth(store) == 0) {
        why = tls_identity_check(cert, c->peer_role, c->peer_node);
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

/* ---- results ----------------------------------------------------------------------------------
 */

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
    } else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        ERR_clear_error();
        ferry_fail(err, FERRY_PEER, "the peer closed the connection in the middle of the data");
    } else if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
        ERR_clear_error();
        ferry_fail(err, FERRY_PEER, "the peer refused this side: alert '%s'",
                   SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
    } else {
        sslerr_fail(err, FERRY_PEER, "TLS");
    }
    return TLS_FAILED;
}

static enum tls_io result(struct tls_conn *c, int rc, int sys, struct ferry_error *err)
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
        ferry_fail_errno(err, sys ? sys : ECONNRESET, "connection to the peer");
        return TLS_FAILED;
    default:
        return fail_protocol(c, err);
    }
}

/* ---- the connection ---------------------------------------------------------------------------
 */

int tls_conn_new(struct tls_credentials *credentials, enum tls_role role, int fd,
                 const char *peer_node, struct tls_conn **ret, struct ferry_error *err)
{
    ferry_cleanup(tls_conn_freep) struct tls_conn *c = ferry_xcalloc(1, sizeof(*c));
    ferry_cleanup(SSL_CTX_freep) SSL_CTX *ctx = NULL;
    int rc = tls_credentials_context(credentials, &ctx, err);

    if (rc < 0) {
        return rc;
    }
    c->peer_node = ferry_strdup(peer_node);
    c->peer_role = role == TLS_CLIENT ? TLS_SERVER : TLS_CLIENT;
    c->ssl = SSL_new(ctx);
    if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1 || SSL_set_app_data(c->ssl, c) != 1) {
        return sslerr_fail(err, FERRY_RETRY, "making a TLS connection");
    }
    SSL_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify_step);
    if (role == TLS_CLIENT) {
        SSL_set_connect_state(c->ssl);
    } else {
        SSL_set_accept_state(c->ssl);
    }
    *ret = ferry_take_ptr(c);
    return 0;
}

void tls_conn_free(struct tls_conn *c)
{
    if (c) {
        SSL_free(c->ssl);
        free(c->peer_node);
        free(c);
    }
}

enum tls_io tls_conn_handshake(struct tls_conn *c, struct ferry_error *err)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(c->ssl);
    return rc == 1 ? TLS_OK : result(c, rc, errno, err);
}

enum tls_io tls_conn_read(struct tls_conn *c, void *buf, size_t n, size_t *ret_n,
                          struct ferry_error *err)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read_ex(c->ssl, buf, n, ret_n);
    return rc == 1 ? TLS_OK : result(c, rc, errno, err);
}

enum tls_io tls_conn_write(struct tls_conn *c, const void *buf, size_t n, size_t *ret_n,
                           struct ferry_error *err)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write_ex(c->ssl, buf, n, ret_n);
    return rc == 1 ? TLS_OK : result(c, rc, errno, err);
}

enum tls_io tls_conn_close_send(struct tls_conn *c, struct ferry_error *err)
{
    ERR_clear_error();
    errno = 0;
    /* 0: ours is out, the peer's has not come. Calling again then would read, so we do not. */
    int rc = SSL_shutdown(c->ssl);
    return rc >= 0 ? TLS_OK : result(c, rc, errno, err);
}
