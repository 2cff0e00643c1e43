/* HTTP client over libcurl: HTTPS to an API server or a node, plain HTTP over a unix socket.
 *
 * One client serves one origin; any thread may use it at any time (handles are pooled, connections
 * are kept open). HTTP statuses are results, not errors: an error means that no answer came. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

struct http_client;

struct http_client_config {
    const char *base_url;    /* "https://127.0.0.1:6443"; "http://localhost" with `unix_socket` */
    const char *unix_socket; /* path of any length, or NULL */
    const char *connect_to;  /* "[ADDRESS]:PORT" to dial while the URL's host is the name that the
                                server's certificate must bear; or NULL */
    const char *ca_pem;      /* PEM text; required for https */
    bool any_certificate;    /* ... unless this: whoever answers is believed; for what is checked
                                by other means */
    const char *cert_pem, *key_pem; /* client certificate, or NULL */
    const char *token;              /* bearer token, or NULL */
    const char *token_file;         /* read again whenever it changes: tokens of pods are replaced
                                       before they end; or NULL */
};

int http_client_new(const struct http_client_config *cfg, struct http_client **ret,
                    struct ferry_error *err);
/* Connections that are made from now on show this certificate; those that are open go on. */
void http_client_renew(struct http_client *c, const char *cert_pem, const char *key_pem);
void http_client_free(struct http_client *c);

struct http_call {
    const char *method, *path; /* path with query, percent-encoded */
    const char *content_type;  /* of the body, or NULL */
    const char *accept;        /* or NULL */
    const char *body;          /* or NULL */
    size_t body_len;
    int timeout_ms;   /* whole call; 0 = 30 s */
    size_t max_reply; /* a longer body is an error; 0 = 256 MiB */
};

struct http_reply {
    int status;
    struct ferry_buf body;
    char warning[256]; /* text of the first Warning header, or "" */
};
void http_reply_done(struct http_reply *r);
#define http_cleanup_reply ferry_cleanup(http_reply_done)

int http_client_call(struct http_client *c, const struct http_call *call, struct http_reply *ret,
                     struct ferry_error *err);

/* GET that delivers its body as it comes. `on_data` returns false to stop. `stop` is polled about
 * once a second. Ends with 0 when the server closed, -FERRY_CANCELLED when stopped, an error when
 * the connection broke or nothing came for `idle_ms` (0 = never). `*ret_status` is set as soon as
 * headers are there; on a status other than 200 the body (capped) goes to `ret_error_body`.
 * `on_head` (may be NULL) gets status and content type ("" = none) before the first byte of the
 * body. */
struct http_stream_call {
    const char *path, *accept;
    int idle_ms;
    void (*on_head)(void *ctx, int status, const char *content_type);
    bool (*on_data)(void *ctx, const char *data, size_t n);
    bool (*stop)(void *ctx);
    void *ctx;
};
int http_client_stream(struct http_client *c, const struct http_stream_call *call, int *ret_status,
                       struct ferry_buf *ret_error_body, struct ferry_error *err);

/* Percent-encodes a path segment or query value. Owned by the caller. */
char *http_escape(const char *s);
