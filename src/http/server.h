/* HTTP/1.1 server on a listening socket (unix or TCP, plain or TLS), over libmicrohttpd.
 *
 * Each connection has a thread of its own; the handler runs on it and may block. It must answer
 * each exchange exactly once before it returns. Over TLS the client's certificate is verified here,
 * per connection (libmicrohttpd does not do it by itself): chain to `ca_pem`, time, usage
 * clientAuth. A client without a certificate is served as anonymous; one with a bad certificate
 * too, with the reason in `tls_error`: the handler decides. Over TLS strangers have a share of the
 * connections only, and little time (doors_decide.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "http/body_budget.h"
#include "http/doors_decide.h"

struct http_server;
struct http_exchange;

enum { HTTP_NAME_MAX = 256, HTTP_GROUPS_MAX = 8 };

struct http_peer {
    bool local; /* came over a unix socket: uid, gid, pid are set */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    bool certificate; /* verified client certificate: common_name and groups are set */
    char common_name[HTTP_NAME_MAX];
    char groups[HTTP_GROUPS_MAX][HTTP_NAME_MAX]; /* organisations (O) of the subject */
    size_t n_groups;
    char serial[64];               /* of the certificate, hex */
    char generation[48];           /* of its node's admission (tls/denial.h), or "" */
    int64_t not_before;            /* when it began, Unix time in seconds */
    char tls_error[HTTP_NAME_MAX]; /* why a presented certificate was not accepted, or "" */
    char address[64];              /* numeric, for logs */
};

/* What a request may bring along; set to what the server allows everybody. */
struct http_terms {
    size_t max_body;
    enum body_rank rank; /* in the budget of all bodies */
};

struct http_server_config {
    const char *name;                        /* for logs */
    int listen_fd;                           /* taken, also on failure */
    const char *cert_pem, *key_pem, *ca_pem; /* all NULL = plain; copied */
    size_t max_body;                         /* larger requests get 413; 0 = 1 MiB */
    struct doors_limits doors;  /* over TLS; zero = defaults. `body_ms` holds without TLS, too */
    struct body_budget *budget; /* shared with others; borrowed; NULL = one of its own */
    unsigned max_connections;   /* 0 = 512 */
    /* Asked of a request that has a body, before a byte of it is read: whether its caller may send
     * it. If not, answers like `handle` and returns false: the body is thrown away. NULL = all may.
     */
    bool (*admit)(struct http_exchange *x, struct http_terms *terms, void *ctx);
    void (*handle)(struct http_exchange *x, void *ctx);
    /* Words what the server refuses by itself (413, 500); NULL = http_answer_error(). */
    void (*refuse)(struct http_exchange *x, int status, const struct ferry_error *err);
    void *ctx;
};

int http_server_start(const struct http_server_config *cfg, struct http_server **ret,
                      struct ferry_error *err);
/* New connections get this certificate from now on; those that are open go on as they are. One
 * thread at a time. */
int http_server_renew(struct http_server *s, const char *cert_pem, const char *key_pem,
                      struct ferry_error *err);
/* Stops listening, ends streams (their `read` sees http_server_stopping), waits for handlers. */
void http_server_stop(struct http_server *s);
/* As http_server_stop(), but whoever has connected is still answered, until `deadline_ns` at the
 * latest, and the listening socket stays open: it is returned, for another server to go on with.
 * Who connects meanwhile waits. */
int http_server_leave(struct http_server *s, int64_t deadline_ns);
bool http_server_stopping(const struct http_server *s);

/* The request. Strings live as long as the exchange. */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x); /* percent-decoded, without the query */
const char *http_query(const struct http_exchange *x,
                       const char *name); /* "" if given without value, NULL if absent */
/* All of the query, percent-encoded anew, with its "?"; "" when there is none. Owned by the caller.
 */
char *http_query_text(const struct http_exchange *x);
const char *http_header(const struct http_exchange *x, const char *name);
const char *http_body(const struct http_exchange *x,
                      size_t *ret_len); /* NUL-terminated, never NULL */
const struct http_peer *http_peer(const struct http_exchange *x);
/* The caller has shown who it is, though not by a certificate: its connection is not a stranger's
 * until this request is answered. */
void http_vouch(struct http_exchange *x);
/* Its certificate is good no more, whatever its signature says: it is a stranger, with all its
 * requests. */
void http_disown(struct http_exchange *x);
struct http_server *http_exchange_server(const struct http_exchange *x);

/* The answer. */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
void http_answer(struct http_exchange *x, int status, const char *content_type, const void *body,
                 size_t len);
void http_answer_json(struct http_exchange *x, int status, const char *json);
/* {"code": status, "message": err->msg, "retry": bool, "reason": ferry_error_reason()}; the status
 * follows from the class when 0. */
void http_answer_error(struct http_exchange *x, int status, const struct ferry_error *err);
/* Status that fits an error class: 400, 403, 404, 409, 500, 503, ... */
int http_status_of_class(enum ferry_class cls);

/* An answer of unknown length. `read` runs on the connection's thread: it returns bytes written to
 * `buf`, 0 for "nothing yet" (it must itself wait, at most about a second), -1 for the end, or -2
 * when something is missing: the connection is then cut, so that the client notices.
 * `done` runs once, when the connection is finished with it. */
struct http_stream {
    ssize_t (*read)(void *ctx, char *buf, size_t max);
    void (*done)(void *ctx);
    void *ctx;
};
void http_answer_stream(struct http_exchange *x, int status, const char *content_type,
                        const struct http_stream *stream);
