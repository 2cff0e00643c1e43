#include "http/server_peer.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "tls/pki.h"

static void fill_address(struct http_peer *peer, const struct sockaddr *sa)
{
    if (sa && sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;

        inet_ntop(AF_INET, &in->sin_addr, peer->address, sizeof(peer->address));
    } else if (sa && sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)sa;

        inet_ntop(AF_INET6, &in6->sin6_addr, peer->address, sizeof(peer->address));
    } else {
        snprintf(peer->address, sizeof(peer->address), "unix");
    }
}

static void fill_generation(struct http_peer *peer, gnutls_x509_crt_t crt)
{
    static const size_t skip = sizeof(PKI_GENERATION_PREFIX) - 1;

    for (unsigned i = 0; i < HTTP_GROUPS_MAX && !*peer->generation; i++) {
        char text[HTTP_NAME_MAX];
        size_t size = sizeof(text);

        if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATIONAL_UNIT_NAME, i, 0, text,
                                          &size) < 0) {
            return;
        }
        size_t len = strlen(text);
        if (ferry_str_starts(text, PKI_GENERATION_PREFIX) &&
            len - skip < sizeof(peer->generation)) {
            memcpy(peer->generation, text + skip, len - skip + 1);
        }
    }
}

static void fill_names(struct http_peer *peer, gnutls_x509_crt_t crt)
{
    size_t size = sizeof(peer->common_name);

    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, peer->common_name,
                                      &size) < 0) {
        peer->common_name[0] = '\0';
    }
    for (unsigned i = 0; i < HTTP_GROUPS_MAX; i++) {
        size = HTTP_NAME_MAX;
        if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, i, 0,
                                          peer->groups[i], &size) < 0) {
            break;
        }
        peer->n_groups = i + 1;
    }
    fill_generation(peer, crt);
    peer->not_before = (int64_t)gnutls_x509_crt_get_activation_time(crt);
    unsigned char serial[24];
    size = sizeof(serial);
    if (gnutls_x509_crt_get_serial(crt, serial, &size) == 0) {
        for (size_t i = 0; i < size; i++) {
            snprintf(peer->serial + 2 * i, 3, "%02x", serial[i]);
        }
    }
}

static void refuse_certificate(struct http_peer *peer, const char *why)
{
    snprintf(peer->tls_error, sizeof(peer->tls_error), "%s", why);
}

static void verify_certificate(struct http_peer *peer, gnutls_session_t session)
{
    gnutls_typed_vdata_st usage = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                   .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0, n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);

    if (!chain || n == 0) {
        return; /* anonymous */
    }
    int rc = gnutls_certificate_verify_peers(session, &usage, 1, &status);
    if (rc < 0) {
        refuse_certificate(peer, gnutls_strerror(rc));
        return;
    }
    if (status != 0) {
        gnutls_datum_t text = {0};

        if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) == 0) {
            refuse_certificate(peer, (const char *)text.data);
            gnutls_free(text.data);
        } else {
            refuse_certificate(peer, "the client certificate does not verify");
        }
        return;
    }
    gnutls_x509_crt_t crt;
    if (gnutls_x509_crt_init(&crt) < 0) {
        refuse_certificate(peer, "out of memory");
        return;
    }
    if (gnutls_x509_crt_import(crt, &chain[0], GNUTLS_X509_FMT_DER) == 0) {
        fill_names(peer, crt);
        peer->certificate = true;
    } else {
        refuse_certificate(peer, "the client certificate cannot be read");
    }
    gnutls_x509_crt_deinit(crt);
}

union MHD_ConnectionInfo server_peer_info(struct MHD_Connection *c,
                                          enum MHD_ConnectionInfoType what)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, what);

    return info ? *info : (union MHD_ConnectionInfo){0};
}

void server_peer_find(struct MHD_Connection *c, bool tls, struct http_peer *peer)
{
    int fd = server_peer_info(c, MHD_CONNECTION_INFO_CONNECTION_FD).connect_fd;
    int family = 0;
    socklen_t len = sizeof(family);

    fill_address(peer, server_peer_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS).client_addr);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family == AF_UNIX) {
        struct ferry_peer cred;

        if (ferry_unix_peer(fd, &cred, NULL) == 0) {
            peer->local = true;
            peer->uid = cred.uid;
            peer->gid = cred.gid;
            peer->pid = cred.pid;
        }
        snprintf(peer->address, sizeof(peer->address), "unix");
    }
    if (tls) {
        gnutls_session_t session =
            server_peer_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION).tls_session;

        if (session) {
            verify_certificate(peer, session);
        }
    }
}
