#include "handler/serve/node_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "tls/conn.h"

#define PROBE_NS (3 * FERRY_NS_PER_S)
enum { SMALL_MSS = 400 };

FERRY_DEFINE_CLEANUP(struct tls_credentials *, tls_credentials_free)
FERRY_DEFINE_CLEANUP(struct tls_conn *, tls_conn_free)

static int await(int fd, short events, int64_t deadline, struct ferry_error *err)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = (deadline - ferry_now_ns()) / FERRY_NS_PER_MS;

    if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
        return ferry_fail(err, FERRY_RETRY, "no answer within %d s",
                          (int)(PROBE_NS / FERRY_NS_PER_S));
    }
    return 0;
}

/* `mss`: the longest segment that either side may send; 0 = as the interface allows. */
static int dial(const char *address, int port, int mss, int64_t deadline, struct ferry_error *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
    const struct sockaddr *sa = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    int failed = 0;
    socklen_t len = sizeof(failed);

    if (!is_six && inet_pton(AF_INET, address, &four.sin_addr) != 1) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is not a numeric address", address);
    }
    ferry_cleanup_fd int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "making a socket");
    }
    if (mss > 0 && setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)) < 0) {
        return ferry_fail_errno(err, errno, "asking for short segments");
    }
    if (connect(fd, sa, is_six ? sizeof(six) : sizeof(four)) < 0) {
        failed = errno;
        if (failed == EINPROGRESS) {
            int rc = await(fd, POLLOUT, deadline, err);

            if (rc < 0) {
                return ferry_wrap(err, "connecting to %s port %d", address, port);
            }
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len);
        }
    }
    return failed ? ferry_fail_errno(err, failed, "connecting to %s port %d", address, port)
                  : ferry_take_fd(&fd);
}

static int shake(struct tls_conn *tls, int fd, int64_t deadline, struct ferry_error *err)
{
    for (;;) {
        int rc;

        switch (tls_conn_handshake(tls, err)) {
        case TLS_OK:
            return 0;
        case TLS_WANT_READ:
            rc = await(fd, POLLIN, deadline, err);
            break;
        case TLS_WANT_WRITE:
            rc = await(fd, POLLOUT, deadline, err);
            break;
        default:
            return ferry_wrap(err, "TLS handshake");
        }
        if (rc < 0) {
            return ferry_wrap(err, "TLS handshake");
        }
    }
}

/* One connection and its handshake; where it ended. */
static enum node_probe_stage attempt(struct tls_credentials *credentials, const char *node,
                                     const char *address, int port, int mss,
                                     struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + PROBE_NS;
    ferry_cleanup_fd int fd = dial(address, port, mss, deadline, err);
    ferry_cleanup(tls_conn_freep) struct tls_conn *tls = NULL;

    if (fd < 0) {
        return NODE_PROBE_REACH;
    }
    if (!credentials) {
        return NODE_PROBE_DONE;
    }
    int rc = tls_conn_new(&(struct tls_conn_config){.credentials = credentials,
                                                    .role = TLS_CLIENT,
                                                    .fd = fd,
                                                    .peer = {.node = node},
                                                    .protocol = TLS_FERRY_PROTOCOL},
                          &tls, err);
    if (rc == 0) {
        rc = shake(tls, fd, deadline, err);
    }
    return rc == 0 ? NODE_PROBE_DONE : NODE_PROBE_SHAKE;
}

static int load(const char *pki_dir, struct tls_credentials **ret, struct ferry_error *err)
{
    ferry_cleanup_free char *ca = ferry_asprintf("%s/ca.crt", pki_dir);
    ferry_cleanup_free char *cert = ferry_asprintf("%s/relay.crt", pki_dir);
    ferry_cleanup_free char *key = ferry_asprintf("%s/relay.key", pki_dir);

    return tls_credentials_new(&(struct tls_credentials_files){.ca = ca, .cert = cert, .key = key},
                               ret, err);
}

void node_probe(const char *pki_dir, const char *node, const char *address, int port, bool plain,
                struct node_probe *ret)
{
    ferry_cleanup(tls_credentials_freep) struct tls_credentials *credentials = NULL;
    struct ferry_error ignored;

    *ret = (struct node_probe){.stage = NODE_PROBE_SHAKE};
    if (!plain && load(pki_dir, &credentials, &ret->error) < 0) {
        return;
    }
    ret->stage = attempt(credentials, node, address, port, 0, &ret->error);
    /* A handshake that is met with silence: do short packets come through where long ones do not?
     * A bridge whose MTU is smaller than its ports' drops the long ones without a word. */
    if (ret->stage == NODE_PROBE_SHAKE && ret->error.cls == FERRY_RETRY &&
        attempt(credentials, node, address, port, SMALL_MSS, &ignored) == NODE_PROBE_DONE) {
        ret->stage = NODE_PROBE_MTU;
        ferry_fail(&ret->error, FERRY_RETRY,
                   "packets of full size to %s get lost, segments of %d bytes come through",
                   address, SMALL_MSS);
    }
}
