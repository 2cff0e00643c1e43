#include "relay/common/net.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
    BACKLOG = 64,
    /* What is queued in the kernel lengthens a guest's downtime, so the queues are bounded. */
    SOCKET_BUFFER = 256 * 1024,
    /* Often enough that a silence of ten seconds on an idle connection means something
     * (relay/common/path.h). */
    KEEPALIVE_IDLE_S = 3,
    KEEPALIVE_INTERVAL_S = 2,
    KEEPALIVE_COUNT = 4,
    EXHAUSTED_RETRY_MS = 100,
};

struct address {
    struct sockaddr_storage sa;
    socklen_t len;
};

static int resolve(const char *address, int port, struct address *ret, struct ferry_error *err)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *info = NULL;
    char service[16];

    snprintf(service, sizeof(service), "%d", port);
    int rc = getaddrinfo(address, service, &hints, &info);
    if (rc != 0) {
        return ferry_fail(err, FERRY_INVALID, "address '%s': %s", address, gai_strerror(rc));
    }
    memcpy(&ret->sa, info->ai_addr, info->ai_addrlen);
    ret->len = info->ai_addrlen;
    freeaddrinfo(info);
    return 0;
}

/* A socket for `ret`, the address that the text means. */
static int tcp_socket(const char *address, int port, struct address *ret, struct ferry_error *err)
{
    int rc = resolve(address, port, ret, err);

    if (rc < 0) {
        return rc;
    }
    int fd = socket(ret->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    return fd < 0 ? ferry_fail_errno(err, errno, "making a TCP socket") : fd;
}

static void set_int(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value)); /* tuning: works without */
}

/* Before connect() and listen(): the window scale is chosen there. */
static void bound_buffers(int fd)
{
    set_int(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER);
    set_int(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
}

void relay_net_tune(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
    /* bbr, where it is the default, costs a fifth more CPU per byte, and streams that began at
     * different fillings of a queue share its link as one to ten. There an unprivileged process may
     * not have cubic as a rule, but it always may have reno. */
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) < 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    /* What is not on its way yet is better kept here, where something newer can go first. */
    set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, SOCKET_BUFFER);
}

int relay_net_listen(const char *address, int *port, bool bounded, struct ferry_error *err)
{
    struct address a;
    ferry_cleanup_fd int fd = tcp_socket(address, *port, &a, err);

    if (fd < 0) {
        return fd;
    }
    if (bounded) {
        bound_buffers(fd);
    }
    if (*port != 0) {
        set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* connections of an earlier relay linger on */
    }
    if (a.sa.ss_family == AF_INET6) {
        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0); /* "::" means every address of both families */
    }
    if (bind(fd, (struct sockaddr *)&a.sa, a.len) < 0 || listen(fd, BACKLOG) < 0) {
        return ferry_fail_errno(err, errno, "listening on address %s", address);
    }
    a.len = sizeof(a.sa);
    if (getsockname(fd, (struct sockaddr *)&a.sa, &a.len) < 0) {
        return ferry_fail_errno(err, errno, "reading the port of a listener on %s", address);
    }
    *port = ntohs(a.sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a.sa)->sin6_port
                                             : ((struct sockaddr_in *)&a.sa)->sin_port);
    return ferry_take_fd(&fd);
}

int relay_net_wait(int fd, short events, int stop_fd, int64_t deadline_ns, struct ferry_error *err)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = stop_fd, .events = POLLIN}, {.fd = fd, .events = events}};
        int left = ferry_ms_left(deadline_ns);
        int n = poll(p, 2, left);

        if (n < 0 && errno != EINTR) {
            return ferry_fail_errno(err, errno, "waiting for a socket");
        }
        if (n > 0 && p[0].revents) {
            return ferry_fail(err, FERRY_CANCELLED, "stopped");
        }
        if (n > 0) {
            return 0;
        }
        if (n == 0 && left == 0) {
            return ferry_fail(err, FERRY_RETRY, "no answer in time");
        }
    }
}

int relay_net_error(int fd)
{
    int e = 0;
    socklen_t len = sizeof(e);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 ? errno : e;
}

/* A socket, waiting for one while the process or the machine has no descriptor left. */
static int make_socket(int family, int stop_fd, int64_t deadline_ns, struct ferry_error *err)
{
    for (;;) {
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
        int64_t next = ferry_now_ns() + EXHAUSTED_RETRY_MS * FERRY_NS_PER_MS;

        if (fd >= 0) {
            return fd;
        }
        if ((errno != EMFILE && errno != ENFILE) || next > deadline_ns) {
            return ferry_fail_errno(err, errno, "making a TCP socket");
        }
        int rc = relay_net_wait(-1, 0, stop_fd, next, err);
        if (rc < 0 && rc != -FERRY_RETRY) {
            return rc;
        }
    }
}

/* Needs no privilege on kernels since 5.7. */
static int leave_by(int fd, const char *interface, struct ferry_error *err)
{
    if (interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                                (socklen_t)strlen(interface) + 1) < 0) {
        return ferry_fail_errno(err, errno, "binding to the network interface '%s'", interface);
    }
    return 0;
}

int relay_net_dial_start(const struct relay_net_way *way, struct ferry_error *err)
{
    struct address a;
    ferry_cleanup_fd int fd = tcp_socket(way->address, way->port, &a, err);

    if (fd < 0) {
        return fd;
    }
    relay_net_tune(fd);
    int rc = leave_by(fd, way->interface, err);
    if (rc < 0) {
        return rc;
    }
    if (connect(fd, (struct sockaddr *)&a.sa, a.len) < 0 && errno != EINPROGRESS) {
        return ferry_fail_errno(err, errno, "connecting to %s port %d", way->address, way->port);
    }
    return ferry_take_fd(&fd);
}

int relay_net_dial(const struct relay_net_way *way, int stop_fd, int64_t deadline_ns,
                   struct ferry_error *err)
{
    struct address a;
    int rc = resolve(way->address, way->port, &a, err);

    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_fd int fd = make_socket(a.sa.ss_family, stop_fd, deadline_ns, err);
    if (fd < 0) {
        return fd;
    }
    bound_buffers(fd);
    relay_net_tune(fd);
    if ((rc = leave_by(fd, way->interface, err)) < 0) {
        return rc;
    }
    if (connect(fd, (struct sockaddr *)&a.sa, a.len) == 0) {
        return ferry_take_fd(&fd);
    }
    int e = errno;
    if (e == EINPROGRESS) {
        rc = relay_net_wait(fd, POLLOUT, stop_fd, deadline_ns, err);
        if (rc < 0) {
            return ferry_wrap(err, "connecting to %s port %d", way->address, way->port);
        }
        e = relay_net_error(fd);
    }
    if (e != 0) {
        return ferry_fail_errno(err, e, "connecting to %s port %d", way->address, way->port);
    }
    return ferry_take_fd(&fd);
}

void relay_net_peer_name(int fd, char ret[RELAY_NET_NAME])
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    char host[64], port[16];

    if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0 ||
        getnameinfo((struct sockaddr *)&sa, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        snprintf(ret, RELAY_NET_NAME, "unknown");
        return;
    }
    snprintf(ret, RELAY_NET_NAME, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

bool relay_net_same_host(const char *name, const char *address)
{
    const char *host = name[0] == '[' ? name + 1 : name;
    size_t n = name[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");

    /* On a listener for both families IPv4 shows as ::ffff:192.0.2.1. */
    if (strncmp(host, "::ffff:", 7) == 0) {
        host += 7;
        n -= 7;
    }
    return n == strlen(address) && strncmp(host, address, n) == 0;
}

int relay_net_sample(int fd, int64_t now_ns, struct relay_path_sample *ret)
{
    struct tcp_info ti = {0};
    socklen_t len = sizeof(ti);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &ti, &len) < 0) {
        return -1;
    }
    unsigned ack_ms = ti.tcpi_last_ack_recv, data_ms = ti.tcpi_last_data_recv;
    *ret = (struct relay_path_sample){.now_ns = now_ns,
                                      .unacked = ti.tcpi_unacked,
                                      .probes = ti.tcpi_probes,
                                      .queued = ti.tcpi_notsent_bytes > 0,
                                      .quiet_ms = ack_ms < data_ms ? ack_ms : data_ms};
    return 0;
}

void relay_net_linger(int fd, int stop_fd, int64_t deadline_ns)
{
    char scrap[16 * 1024];

    if (shutdown(fd, SHUT_WR) < 0) {
        return;
    }
    for (;;) {
        ssize_t n = recv(fd, scrap, sizeof(scrap), 0);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return;
        }
        if (relay_net_wait(fd, POLLIN, stop_fd, deadline_ns, NULL) < 0) {
            return;
        }
    }
}
