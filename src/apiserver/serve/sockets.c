#include "apiserver/serve/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

enum { BACKLOG = 4096 }; /* the kernel has its own limit, too */
static const char default_listen[] = "127.0.0.1:6443";

void sockets_done(struct sockets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        ferry_closep(&s->items[i].fd);
    }
}

static int learn_address(struct listening *s, struct ferry_error *err)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof(ss);

    if (getsockname(s->fd, (struct sockaddr *)&ss, &len) < 0) {
        return ferry_fail_errno(err, errno, "asking for a socket's address");
    }
    if (ss.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&ss;

        inet_ntop(AF_INET, &in->sin_addr, s->address, sizeof(s->address));
        s->port = ntohs(in->sin_port);
    } else if (ss.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&ss;

        inet_ntop(AF_INET6, &in6->sin6_addr, s->address, sizeof(s->address));
        s->port = ntohs(in6->sin6_port);
        s->v6 = true;
    } else {
        return ferry_fail(err, FERRY_INVALID, "an inherited socket is not a TCP socket");
    }
    return 0;
}

static int bind_address(const struct addrinfo *a, const char *where, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        return ferry_fail_errno(err, errno, "listening on %s", where);
    }
    return ferry_take_fd(&fd);
}

/* "127.0.0.1:6443", "[::1]:0", "localhost:6443" */
static int open_socket(const char *where, struct listening *ret, struct ferry_error *err)
{
    const char *colon = strrchr(where, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    long long port;

    if (!colon || colon == where || ferry_parse_int(colon + 1, 0, 65535, &port, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "--listen: '%s' is not ADDRESS:PORT", where);
    }
    bool brackets = where[0] == '[' && colon[-1] == ']';
    ferry_cleanup_free char *host =
        ferry_strndup(where + brackets, (size_t)(colon - where) - 2 * (size_t)brackets);
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    if (rc != 0) {
        return ferry_fail(err, FERRY_INVALID, "--listen: '%s': %s", where, gai_strerror(rc));
    }
    ret->fd = bind_address(found, where, err);
    freeaddrinfo(found);
    return ret->fd < 0 ? ret->fd : learn_address(ret, err);
}

int sockets_open(const struct ferry_option_list *listen, struct sockets *ret,
                 struct ferry_error *err)
{
    int inherited = ferry_listen_fds();
    size_t n_listen = listen->n;

    for (size_t i = 0; i < n_listen || (i == 0 && inherited == 0); i++) {
        struct listening *s = &ret->items[ret->n];
        int rc = open_socket(i < n_listen ? listen->items[i] : default_listen, s, err);

        ret->n += s->fd > 0;
        if (rc < 0) {
            return rc;
        }
    }
    for (int i = 0; i < inherited && ret->n < SOCKETS_MAX; i++) {
        struct listening *s = &ret->items[ret->n++];

        s->fd = FERRY_LISTEN_FDS_START + i;
        int rc = learn_address(s, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

char *sockets_url(const struct listening *s)
{
    const char *host = s->address;

    /* a wildcard is where one listens, not where one goes */
    if (strcmp(host, "0.0.0.0") == 0) {
        host = "127.0.0.1";
    } else if (strcmp(host, "::") == 0) {
        host = "::1";
    }
    return ferry_asprintf("https://%s%s%s:%d", s->v6 ? "[" : "", host, s->v6 ? "]" : "", s->port);
}
