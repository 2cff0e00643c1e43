/* Theory of operation.
 *
 * Two servers share one handler function: HTTPS on the node's address, and the unix socket. Each
 * call looks at caches, launchers and relay at that moment and keeps nothing. A renewed certificate
 * is for new connections; calls that are under way go on. */
#include "handler/serve/node_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/serve/node_answers.h"

/* The API server alone may have 64 calls under way. */
enum { MAX_CONNECTIONS = 192, BACKLOG = 1024, PEM_MAX = 1 << 20 };

struct node_api {
    struct node_api_config cfg;
    struct http_server *local, *remote;
    int port;
    struct timespec certificate; /* time of the file that is served */
};

const char *node_api_refusal(const struct http_peer *peer)
{
    if (peer->local) {
        return peer->uid == 0 || peer->uid == geteuid() ? NULL : "only root may call it";
    }
    if (!peer->certificate) {
        return peer->tls_error[0] ? peer->tls_error : "a client certificate is needed";
    }
    for (size_t i = 0; i < peer->n_groups; i++) {
        if (ferry_streq(peer->groups[i], "ferry:admins")) {
            return NULL;
        }
    }
    return ferry_streq(peer->common_name, "system:ferry-apiserver")
               ? NULL
               : "only the API server and administrators may call it";
}

static bool refused(struct http_exchange *x)
{
    const struct http_peer *peer = http_peer(x);
    const char *why = node_api_refusal(peer);
    struct ferry_error err;

    if (why) {
        if (!peer->local) {
            http_disown(x); /* another node's certificate gives nothing here, and no place either */
        }
        ferry_warn("call of the node API refused", F_STR("path", http_path(x)),
                   F_STR("user", peer->common_name), F_STR("from", peer->address),
                   F_STR("reason", why));
        ferry_fail(&err, FERRY_DENIED, "%s", why);
        http_answer_error(x, peer->local || peer->certificate ? 403 : 401, &err);
    }
    return why;
}

static bool admit(struct http_exchange *x, struct http_terms *terms, void *ctx)
{
    (void)terms, (void)ctx;
    return !refused(x);
}

static void handle(struct http_exchange *x, void *ctx)
{
    const struct node_api *a = ctx;

    if (!refused(x)) {
        node_answer(x, &a->cfg);
    }
}

/* ---- listening --------------------------------------------------------------------------------
 */

static int listen_tcp(const char *address, int *port, struct ferry_error *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)*port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    bool is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
    struct sockaddr *sa = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t len = is_six ? sizeof(six) : sizeof(four);
    int on = 1;

    if (!is_six && inet_pton(AF_INET, address, &four.sin_addr) != 1) {
        return ferry_fail(err, FERRY_INVALID, "'%s' is not a numeric address", address);
    }
    ferry_cleanup_fd int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, sa, len) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, sa, &len) < 0) {
        return ferry_fail_errno(err, errno, "listening on %s port %d", address, *port);
    }
    *port = ntohs(is_six ? six.sin6_port : four.sin_port);
    return ferry_take_fd(&fd);
}

static int read_pem(const char *dir, const char *name, struct ferry_buf *ret,
                    struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, name);

    return ferry_read_file(path, PEM_MAX, ret, err);
}

static bool certificate_time(const struct node_api *a, struct timespec *ret)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/node.crt", a->cfg.pki_dir);
    struct stat st;

    if (stat(path, &st) < 0) {
        return false;
    }
    *ret = st.st_mtim;
    return true;
}

static void wipe(struct ferry_buf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->len);
    }
    ferry_buf_done(b);
}

static int serve_remote(struct node_api *a, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf ca = {0}, cert = {0};
    ferry_cleanup(wipe) struct ferry_buf key = {0};
    int port = a->port ? a->port : a->cfg.port;
    struct timespec at;
    bool known = certificate_time(a, &at);
    int rc = read_pem(a->cfg.pki_dir, "ca.crt", &ca, err);

    if (rc == 0) {
        rc = read_pem(a->cfg.pki_dir, "node.crt", &cert, err);
    }
    if (rc == 0) {
        rc = read_pem(a->cfg.pki_dir, "node.key", &key, err);
    }
    int fd = rc < 0 ? rc : listen_tcp(a->cfg.node->address, &port, err);
    if (fd < 0) {
        return fd;
    }
    rc = http_server_start(&(struct http_server_config){.name = "node API",
                                                        .listen_fd = fd,
                                                        .cert_pem = cert.data,
                                                        .key_pem = key.data,
                                                        .ca_pem = ca.data,
                                                        .max_connections = MAX_CONNECTIONS,
                                                        .admit = admit,
                                                        .handle = handle,
                                                        .ctx = a},
                           &a->remote, err);
    if (rc == 0) {
        a->port = port;
        a->certificate = known ? at : (struct timespec){0};
    }
    return rc;
}

/* Calls that are under way go on. */
static int serve_renewed(struct node_api *a, struct timespec at, struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf cert = {0};
    ferry_cleanup(wipe) struct ferry_buf key = {0};
    int rc = read_pem(a->cfg.pki_dir, "node.crt", &cert, err);

    if (rc == 0) {
        rc = read_pem(a->cfg.pki_dir, "node.key", &key, err);
    }
    if (rc == 0) {
        rc = http_server_renew(a->remote, cert.data, key.data, err);
    }
    if (rc == 0) {
        a->certificate = at;
        ferry_info("certificate of the node API renewed");
    }
    return rc;
}

void node_api_refresh(struct node_api *a)
{
    struct timespec at;
    struct ferry_error err;

    if (!certificate_time(a, &at) ||
        (a->remote && at.tv_sec == a->certificate.tv_sec && at.tv_nsec == a->certificate.tv_nsec)) {
        return;
    }
    if ((a->remote ? serve_renewed(a, at, &err) : serve_remote(a, &err)) < 0) {
        ferry_warn("cannot serve the node API with the present certificate, retrying", F_ERR(&err));
    }
}

int node_api_start(const struct node_api_config *cfg, struct node_api **ret,
                   struct ferry_error *err)
{
    struct node_api *a = ferry_xcalloc(1, sizeof(*a));
    struct ferry_error why;
    struct timespec at;

    a->cfg = *cfg;
    int fd = ferry_unix_listen(cfg->socket, 0600, BACKLOG, err);
    int rc =
        fd < 0 ? fd
               : http_server_start(&(struct http_server_config){.name = "node API, local",
                                                                .listen_fd = fd,
                                                                .max_connections = MAX_CONNECTIONS,
                                                                .admit = admit,
                                                                .handle = handle,
                                                                .ctx = a},
                                   &a->local, err);
    if (rc < 0) {
        free(a);
        return rc;
    }
    if (!certificate_time(a, &at)) {
        ferry_warn("no node certificate: the node API is served locally only",
                   F_STR("dir", cfg->pki_dir));
    } else if (serve_remote(a, &why) < 0) {
        ferry_warn("cannot serve the node API over HTTPS, retrying", F_ERR(&why));
    }
    *ret = a;
    return 0;
}

int node_api_port(const struct node_api *a)
{
    return a->remote ? a->port : 0;
}

void node_api_stop(struct node_api *a)
{
    if (!a) {
        return;
    }
    if (a->remote) {
        http_server_stop(a->remote);
    }
    http_server_stop(a->local);
    unlink(a->cfg.socket);
    free(a);
}
