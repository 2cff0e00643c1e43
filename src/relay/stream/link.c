#include "relay/stream/link.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "relay/common/net.h"

#define OPEN_NS (5 * FERRY_NS_PER_S) /* connect and handshake together */
#define END_NS (5 * FERRY_NS_PER_S)

void relay_link_tls_config(const struct relay_spec *spec, struct tls_credentials *credentials,
                           int fd, struct tls_conn_config *ret)
{
    *ret = (struct tls_conn_config){
        .credentials = spec->mode == RELAY_PLAIN ? NULL : credentials,
        .role = spec->role == RELAY_SOURCE ? TLS_CLIENT : TLS_SERVER,
        .fd = fd,
        .peer = {.node = spec->peer_node, .common_name = spec->peer_cn},
        .protocol = spec->mode == RELAY_FERRY ? TLS_FERRY_PROTOCOL : NULL,
    };
}

void relay_link_close(struct relay_link *l)
{
    tls_conn_free(l->tls);
    if (l->fd >= 0) {
        close(l->fd);
    }
    *l = (struct relay_link)RELAY_LINK_INIT;
}

static int failed(struct relay_link *l, int rc)
{
    relay_link_close(l);
    return rc;
}

int relay_link_dial(struct relay_link *l, const struct relay_spec *spec, int port,
                    struct tls_credentials *credentials, int64_t now, struct ferry_error *err)
{
    struct tls_conn_config config;
    const struct relay_net_way way = {spec->address, port, spec->interface};
    int fd = relay_net_dial_start(&way, err);

    if (fd < 0) {
        return fd;
    }
    l->fd = fd;
    relay_link_tls_config(spec, credentials, fd, &config);
    int rc = tls_conn_new(&config, &l->tls, err);
    if (rc < 0) {
        return failed(l, rc);
    }
    l->state = RELAY_LINK_CONNECTING;
    l->want = POLLOUT;
    l->deadline_ns = now + OPEN_NS;
    return 0;
}

void relay_link_adopt(struct relay_link *l, int fd, struct tls_conn *tls)
{
    relay_link_close(l);
    *l = (struct relay_link){.state = RELAY_LINK_UP, .fd = fd, .tls = tls, .readable = true};
}

static int step_connecting(struct relay_link *l, struct ferry_error *err)
{
    struct pollfd p = {.fd = l->fd, .events = POLLOUT};

    if (poll(&p, 1, 0) <= 0) {
        return 0;
    }
    int e = relay_net_error(l->fd);
    if (e != 0) {
        return failed(l, ferry_fail_errno(err, e, "connecting"));
    }
    l->state = RELAY_LINK_PROVING;
    l->want = POLLOUT;
    return 1;
}

static int step_proving(struct relay_link *l, struct ferry_error *err)
{
    switch (tls_conn_handshake(l->tls, err)) {
    case TLS_OK:
        l->state = RELAY_LINK_UP;
        l->readable = true;
        return 1;
    case TLS_WANT_READ:
        l->want = POLLIN;
        return 0;
    case TLS_WANT_WRITE:
        l->want = POLLOUT;
        return 0;
    case TLS_EOF:
        ferry_fail(err, FERRY_PEER, "the peer ended the connection");
        break;
    case TLS_FAILED:
        break;
    }
    ferry_wrap(err, "TLS handshake");
    return failed(l, -(int)err->cls);
}

/* Reads what still comes, to throw it away: a close() with unread data would reset the connection
 * and take with it what the peer has not read yet. */
static int step_ending(struct relay_link *l)
{
    char scrap[16 * 1024];
    ssize_t n;

    while ((n = recv(l->fd, scrap, sizeof(scrap), 0)) > 0 || (n < 0 && errno == EINTR)) {
    }
    if (n < 0 && errno == EAGAIN) {
        return 0;
    }
    relay_link_close(l);
    return 1;
}

int relay_link_step(struct relay_link *l, int64_t now, struct ferry_error *err)
{
    int rc = 0;

    switch (l->state) {
    case RELAY_LINK_CONNECTING:
        rc = step_connecting(l, err);
        break;
    case RELAY_LINK_PROVING:
        rc = step_proving(l, err);
        break;
    case RELAY_LINK_ENDING:
        rc = step_ending(l);
        break;
    case RELAY_LINK_NONE:
    case RELAY_LINK_UP:
        return 0;
    }
    if (rc == 0 && now >= l->deadline_ns) {
        bool connecting = l->state == RELAY_LINK_CONNECTING;

        return failed(
            l, ferry_fail_errno(err, ETIMEDOUT, connecting ? "connecting" : "TLS handshake"));
    }
    return rc;
}

void relay_link_end(struct relay_link *l, int64_t now)
{
    if (tls_conn_close_send(l->tls, NULL) != TLS_OK || shutdown(l->fd, SHUT_WR) < 0) {
        relay_link_close(l);
        return;
    }
    l->state = RELAY_LINK_ENDING;
    l->want = POLLIN;
    l->deadline_ns = now + END_NS;
}
