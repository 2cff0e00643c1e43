/* Inside of http/server: shared by server.c (connections, requests and answers) and server_body.c
 * (what a request brings along). Nobody else includes it. */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>

#include "base/str.h"
#include "http/server.h"
#include "http/server_doors.h"

enum { SERVER_HEADERS_MAX = 8, SERVER_RETIRED_MAX = 8 };

/* libmicrohttpd reads certificates once: a new one is a new daemon on the same listening socket.
 * The old one takes no more connections and is ended when it has none, at the latest with the
 * server. */
struct retired {
    struct MHD_Daemon *daemon;
    int listen_fd; /* must stay open as long as it */
};

struct http_server {
    struct MHD_Daemon *daemon;
    int listen_fd;
    struct retired retired[SERVER_RETIRED_MAX]; /* oldest first */
    size_t n_retired;
    char *ca_pem;
    unsigned max_connections;
    char *name;
    bool tls;
    size_t max_body;
    int64_t body_timeout_ns;
    bool (*admit)(struct http_exchange *x, struct http_terms *terms, void *ctx);
    void (*handle)(struct http_exchange *x, void *ctx);
    void (*refuse)(struct http_exchange *x, int status, const struct ferry_error *err);
    void *ctx;
    atomic_bool stopping;
    struct doors *doors; /* NULL without TLS: who comes is known by other means */
    struct body_budget *budget, *own_budget;
    atomic_int unserved; /* connections that wait for their first answer, or for another one */
};

struct connection_state {
    bool known; /* `peer` is filled in */
    bool unserved;
    bool vouched; /* for this request alone */
    struct visitor visitor;
    struct http_peer peer;
};

struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    char *method, *path;
    struct ferry_buf body;
    struct http_terms terms;
    size_t budget_held;
    size_t dropped; /* bytes of a body that nobody reads */
    bool whole;     /* the request is: it can be answered at any time */
    bool answered;  /* an answer was made; */
    bool sent;      /* and is on its way, */
    bool streams;   /* in pieces */
    bool has_peer;  /* `peer` is filled in */
    bool vouched, disowned;
    enum doors_phase phase;
    int64_t begin_ns;
    struct http_peer peer;
    struct {
        char *name, *value;
    } headers[SERVER_HEADERS_MAX];
    size_t n_headers;
    struct MHD_Response *held; /* an answer for later */
    unsigned held_status;
    enum MHD_Result result;
};

/* server.c */
void server_load_peer(struct http_exchange *x);
void server_set_phase(struct http_exchange *x, enum doors_phase phase);
/* Sends the answer that was held. */
void server_release(struct http_exchange *x);

/* server_body.c */
/* The headers are there. */
enum MHD_Result server_body_begin(struct http_exchange *x);
/* A piece came. */
enum MHD_Result server_body_take(struct http_exchange *x, const char *data, size_t n);
/* All of it is there. False: it was refused. */
bool server_body_whole(struct http_exchange *x);
void server_body_done(struct http_exchange *x);
