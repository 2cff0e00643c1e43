#include "programs/ferry-controller-metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/prom.h"
#include "base/str.h"
#include "http/server.h"

enum { BACKLOG = 16, CONNECTIONS = 16 };

struct metrics_server {
    struct http_server *http;
    pthread_mutex_t lock; /* guards all below, also while it is used */
    struct controller *controller;
};

static int listen_on_port(const char *where, struct ferry_error *err)
{
    long long port = 0;
    int one = 1;

    if (ferry_parse_int(where, 1, 65535, &port, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "--metrics: '%s' is neither a port nor a path",
                          where);
    }
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ferry_cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, BACKLOG) < 0) {
        return ferry_fail_errno(err, errno, "listening on 127.0.0.1:%s for --metrics", where);
    }
    return ferry_take_fd(&fd);
}

static void answer_metrics(struct metrics_server *m, struct http_exchange *x)
{
    struct ferry_buf text = {0};

    pthread_mutex_lock(&m->lock);
    ferry_prom_head(&text, "ferry_controller_leading", "gauge",
                    "1 when this one acts, 0 when it stands by.");
    ferry_prom_sample(&text, "ferry_controller_leading", NULL, m->controller != NULL);
    if (m->controller) {
        controller_metrics(m->controller, &text);
    }
    pthread_mutex_unlock(&m->lock);
    http_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.len);
    ferry_buf_done(&text);
}

static void handle(struct http_exchange *x, void *ctx)
{
    struct ferry_error err = {0};

    if (strcmp(http_method(x), "GET") == 0 && strcmp(http_path(x), "/metrics") == 0) {
        answer_metrics(ctx, x);
    } else if (strcmp(http_method(x), "GET") == 0 && strcmp(http_path(x), "/healthz") == 0) {
        http_answer(x, 200, "text/plain", "ok", 2);
    } else {
        ferry_fail(&err, FERRY_NOT_FOUND, "there is only GET /metrics and /healthz");
        http_answer_error(x, 0, &err);
    }
}

/* Nobody says who they are here, and nothing takes a body. */
static bool admit(struct http_exchange *x, struct http_terms *terms, void *ctx)
{
    struct ferry_error err;

    (void)terms, (void)ctx;
    ferry_fail(&err, FERRY_INVALID, "a body is not taken here");
    http_answer_error(x, 413, &err);
    return false;
}

int metrics_server_start(const char *where, struct metrics_server **ret, struct ferry_error *err)
{
    int fd =
        where[0] == '/' ? ferry_unix_listen(where, 0600, BACKLOG, err) : listen_on_port(where, err);

    if (fd < 0) {
        return fd;
    }
    struct metrics_server *m = ferry_xcalloc(1, sizeof(*m));
    pthread_mutex_init(&m->lock, NULL);
    int rc = http_server_start(&(struct http_server_config){.name = "metrics",
                                                            .listen_fd = fd,
                                                            .max_connections = CONNECTIONS,
                                                            .admit = admit,
                                                            .handle = handle,
                                                            .ctx = m},
                               &m->http, err);
    if (rc < 0) {
        pthread_mutex_destroy(&m->lock);
        free(m);
        return rc;
    }
    *ret = m;
    return 0;
}

void metrics_server_stop(struct metrics_server *m)
{
    if (m) {
        http_server_stop(m->http);
        pthread_mutex_destroy(&m->lock);
        free(m);
    }
}

void metrics_server_of(struct metrics_server *m, struct controller *controller)
{
    if (m) {
        pthread_mutex_lock(&m->lock);
        m->controller = controller;
        pthread_mutex_unlock(&m->lock);
    }
}
