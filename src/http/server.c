/* Theory of operation. libmicrohttpd runs one thread per connection. It calls `on_request` several
 * times for a request: first with an empty state, then per piece of body, then once more to answer.
 * What is known of the peer is found once per connection and kept in the socket context. */
#include "http/server.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "http/server_peer.h"
#include "http/server_strangers.h"

enum {
    DEFAULT_MAX_BODY = 1 << 20,
    DEFAULT_MAX_CONNECTIONS = 512,
    DEFAULT_BODY_TIMEOUT_MS = 120000,
    IDLE_TIMEOUT_S = 300,
    STRANGER_TIMEOUT_S = 20, /* without a certificate: they shall not take all the room there is */
    MAX_HEADERS = 8,
    DROP_FACTOR = 8,
    RETIRED_MAX = 8,
    QUIET_MS = 30,
};

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
    struct retired retired[RETIRED_MAX]; /* oldest first */
    size_t n_retired;
    char *ca_pem;
    unsigned max_connections;
    char *name;
    bool tls;
    size_t max_body;
    int64_t body_timeout_ns;
    void (*handle)(struct http_exchange *x, void *ctx);
    void (*refuse)(struct http_exchange *x, int status, const struct ferry_error *err);
    void *ctx;
    atomic_bool stopping;
    struct strangers *strangers; /* NULL without TLS: who comes is known by other means */
    atomic_int unserved; /* connections that wait for their first answer, or for another one */
};

struct connection_state {
    bool known;
    bool unserved;
    struct stranger stranger;
    struct http_peer peer;
};

struct http_exchange {
    struct http_server *server;
    struct MHD_Connection *connection;
    char *method, *path;
    struct ferry_buf body;
    bool too_large, answered;
    size_t dropped; /* bytes of a body that is too large */
    int64_t begin_ns;
    struct http_peer peer;
    struct {
        char *name, *value;
    } headers[MAX_HEADERS];
    size_t n_headers;
    enum MHD_Result result;
};

/* ---- the peer ---------------------------------------------------------------------------------
 */

/* On the connection's own thread. */
static void set_unserved(struct http_server *s, struct connection_state *state, bool unserved)
{
    if (state && state->unserved != unserved) {
        state->unserved = unserved;
        atomic_fetch_add(&s->unserved, unserved ? 1 : -1);
    }
}

static struct connection_state *state_of(struct MHD_Connection *c)
{
    return server_peer_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT).socket_context;
}

static void set_patience(const struct http_server *s, struct MHD_Connection *c,
                         const struct connection_state *state)
{
    bool stranger = s->tls && !(state && state->known && state->peer.certificate);

    MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)(stranger ? STRANGER_TIMEOUT_S : IDLE_TIMEOUT_S));
}

static void list_stranger(struct http_server *s, struct MHD_Connection *c,
                          struct connection_state *state)
{
    int fd = server_peer_info(c, MHD_CONNECTION_INFO_CONNECTION_FD).connect_fd;

    if (s->strangers && fd > 0) {
        strangers_add(s->strangers, &state->stranger, fd);
    }
}

static void set_busy(struct http_server *s, struct connection_state *state, bool busy)
{
    if (s->strangers && state) {
        strangers_set_busy(s->strangers, &state->stranger, busy);
    }
}

static void forget_stranger(struct http_server *s, struct connection_state *state)
{
    if (s->strangers && state) {
        strangers_remove(s->strangers, &state->stranger);
    }
}

static void on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = ferry_xcalloc(1, sizeof(struct connection_state));
        set_patience(s, c, NULL);
        list_stranger(s, c, *socket_context);
        set_unserved(s, *socket_context, true);
    } else {
        forget_stranger(s, *socket_context);
        set_unserved(s, *socket_context, false);
        free(*socket_context);
        *socket_context = NULL;
    }
}

static void load_peer(struct http_exchange *x)
{
    struct connection_state *state = state_of(x->connection);

    if (!state) {
        server_peer_find(x->connection, x->server->tls, &x->peer);
        return;
    }
    if (!state->known) {
        server_peer_find(x->connection, x->server->tls, &state->peer);
        state->known = true;
        set_patience(x->server, x->connection, state);
        if (state->peer.certificate) {
            forget_stranger(x->server, state);
        }
    }
    set_busy(x->server, state, true);
    x->peer = state->peer;
}

/* ---- the request ------------------------------------------------------------------------------
 */

const char *http_method(const struct http_exchange *x)
{
    return x->method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->path;
}

const char *http_query(const struct http_exchange *x, const char *name)
{
    const char *value = NULL;
    size_t len = 0;

    if (MHD_lookup_connection_value_n(x->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name),
                                      &value, &len) != MHD_YES) {
        return NULL;
    }
    return value ? value : "";
}

static void put_encoded(struct ferry_buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (isalnum(c) || (c && strchr("-_.~", c))) {
            ferry_buf_append(b, s + i, 1);
        } else {
            ferry_buf_printf(b, "%%%02X", c);
        }
    }
}

static enum MHD_Result add_parameter(void *cls, enum MHD_ValueKind kind, const char *key,
                                     size_t key_len, const char *value, size_t value_len)
{
    struct ferry_buf *b = cls;

    (void)kind;
    ferry_buf_puts(b, b->len ? "&" : "?");
    put_encoded(b, key, key_len);
    if (value) {
        ferry_buf_puts(b, "=");
        put_encoded(b, value, value_len);
    }
    return MHD_YES;
}

char *http_query_text(const struct http_exchange *x)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    MHD_get_connection_values_n(x->connection, MHD_GET_ARGUMENT_KIND, add_parameter, &b);
    return ferry_buf_take(&b);
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_exchange *x, size_t *ret_len)
{
    if (ret_len) {
        *ret_len = x->body.len;
    }
    return x->body.data ? x->body.data : "";
}

const struct http_peer *http_peer(const struct http_exchange *x)
{
    return &x->peer;
}

struct http_server *http_exchange_server(const struct http_exchange *x)
{
    return x->server;
}

/* ---- the answer -------------------------------------------------------------------------------
 */

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    if (x->n_headers < MAX_HEADERS) {
        x->headers[x->n_headers].name = ferry_strdup(name);
        x->headers[x->n_headers].value = ferry_strdup(value);
        x->n_headers++;
    }
}

static void queue_response(struct http_exchange *x, int status, const char *content_type,
                           struct MHD_Response *response)
{
    if (content_type) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    for (size_t i = 0; i < x->n_headers; i++) {
        MHD_add_response_header(response, x->headers[i].name, x->headers[i].value);
    }
    x->result = MHD_queue_response(x->connection, (unsigned)status, response);
    x->answered = true;
    MHD_destroy_response(response);
}

void http_answer(struct http_exchange *x, int status, const char *content_type, const void *body,
                 size_t len)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);

    if (response) {
        queue_response(x, status, content_type, response);
    }
}

void http_answer_json(struct http_exchange *x, int status, const char *json)
{
    http_answer(x, status, "application/json", json, strlen(json));
}

int http_status_of_class(enum ferry_class cls)
{
    switch (cls) {
    case FERRY_OK:
        return 200;
    case FERRY_INVALID:
        return 400;
    case FERRY_DENIED:
        return 403;
    case FERRY_NOT_FOUND:
        return 404;
    case FERRY_CONFLICT:
    case FERRY_CANCELLED:
        return 409;
    case FERRY_PEER:
        return 502;
    case FERRY_RETRY:
        return 503;
    case FERRY_FATAL:
    case FERRY_CLASS_COUNT:
        break;
    }
    return 500;
}

void http_answer_error(struct http_exchange *x, int status, const struct ferry_error *err)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (status == 0) {
        status = http_status_of_class(err->cls);
    }
    ferry_buf_printf(&b, "{\"code\":%d,\"message\":", status);
    ferry_buf_json(&b, err->msg);
    ferry_buf_printf(&b, ",\"retry\":%s,\"reason\":", err->cls == FERRY_RETRY ? "true" : "false");
    ferry_buf_json(&b, ferry_error_reason(err));
    ferry_buf_puts(&b, "}\n");
    http_answer_json(x, status, b.data);
}

struct stream_state {
    struct http_stream stream;
    struct http_server *server;
};

static ssize_t stream_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct stream_state *st = cls;

    (void)pos;
    if (http_server_stopping(st->server)) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    ssize_t n = st->stream.read(st->stream.ctx, buf, max);
    return n >= 0    ? n
           : n == -1 ? MHD_CONTENT_READER_END_OF_STREAM
                     : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void stream_done(void *cls)
{
    struct stream_state *st = cls;

    if (st->stream.done) {
        st->stream.done(st->stream.ctx);
    }
    free(st);
}

void http_answer_stream(struct http_exchange *x, int status, const char *content_type,
                        const struct http_stream *stream)
{
    struct stream_state *st = ferry_xcalloc(1, sizeof(*st));

    st->stream = *stream;
    st->server = x->server;
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64 * 1024,
                                                                      stream_read, st, stream_done);
    if (!response) {
        stream_done(st);
        return;
    }
    /* A stream may be silent for long; its reader decides when it is over. */
    MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    queue_response(x, status, content_type, response);
}

/* ---- the daemon -------------------------------------------------------------------------------
 */

static void exchange_free(struct http_exchange *x)
{
    for (size_t i = 0; i < x->n_headers; i++) {
        free(x->headers[i].name);
        free(x->headers[i].value);
    }
    free(x->method);
    free(x->path);
    ferry_buf_done(&x->body);
    free(x);
}

static void refuse_large(struct http_exchange *x)
{
    struct ferry_error err;

    ferry_fail(&err, FERRY_INVALID, "request body larger than %zu bytes", x->server->max_body);
    x->server->refuse(x, 413, &err);
}

static enum MHD_Result answer_request(struct http_exchange *x)
{
    load_peer(x);
    if (x->too_large) {
        refuse_large(x);
    } else {
        x->server->handle(x, x->server->ctx);
    }
    if (!x->answered) {
        struct ferry_error err;

        ferry_fail(&err, FERRY_FATAL, "no answer to %s %s", x->method, x->path);
        x->server->refuse(x, 500, &err);
    }
    return x->answered ? x->result : MHD_NO;
}

/* A body that is somewhat too large is read and dropped, so that its sender, who reads only after
 * it has sent, gets the answer; one that is far too large is not. */
static bool announces_too_much(const struct http_exchange *x)
{
    const char *length = http_header(x, "Content-Length");
    long long n;

    return length && (ferry_parse_int(length, 0, INT64_MAX, &n, NULL) < 0 ||
                      (unsigned long long)n > DROP_FACTOR * x->server->max_body);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_size, void **request_state)
{
    struct http_server *s = cls;
    struct http_exchange *x = *request_state;

    (void)version;
    if (!x) {
        x = ferry_xcalloc(1, sizeof(*x));
        x->server = s;
        x->connection = c;
        x->begin_ns = ferry_now_ns();
        set_unserved(s, state_of(c), true);
        x->method = ferry_strdup(method);
        x->path = ferry_strdup(url);
        *request_state = x;
        if (announces_too_much(x)) {
            refuse_large(x);
            return x->result;
        }
        return MHD_YES;
    }
    if (x->answered) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (*upload_size > 0 && ferry_now_ns() - x->begin_ns > s->body_timeout_ns) {
        /* Whoever sends a byte now and then would hold a connection for good. */
        ferry_info("request body timed out", F_STR("server", s->name));
        return MHD_NO;
    }
    if (*upload_size > 0) {
        if (x->too_large ||
            ferry_buf_append_capped(&x->body, upload_data, *upload_size, s->max_body, NULL) < 0) {
            x->too_large = true;
            ferry_buf_done(&x->body);
            x->dropped += *upload_size;
            if (x->dropped > DROP_FACTOR * s->max_body) {
                return MHD_NO; /* it was told nothing yet, but has sent far too much */
            }
        }
        *upload_size = 0;
        return MHD_YES;
    }
    return answer_request(x);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **request_state,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    set_unserved(cls, state_of(c), false);
    set_busy(cls, state_of(c), false);
    set_patience(cls, c, state_of(c)); /* also after a stream, which had no limit */
    if (*request_state) {
        exchange_free(*request_state);
        *request_state = NULL;
    }
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list ap)
{
    struct http_server *s = cls;
    char text[256];

    if (!ferry_log_on(FERRY_LOG_DEBUG)) {
        return;
    }
    vsnprintf(text, sizeof(text), fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    ferry_debug("http server", F_STR("server", s->name), F_STR("says", text));
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* "%2F" and the like, in place. "%00" stays as it is: decoded it would end the text for everybody
 * who reads it, and be another address than the one that was asked for. */
static size_t unescape(void *cls, struct MHD_Connection *c, char *text)
{
    char *out = text;

    (void)cls;
    (void)c;
    for (const char *in = text; *in;) {
        int high = in[0] == '%' ? digit_of(in[1]) : -1;
        int low = high >= 0 ? digit_of(in[2]) : -1;

        if (low >= 0 && (high || low)) {
            *out++ = (char)(high << 4 | low);
            in += 3;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    return (size_t)(out - text);
}

static struct MHD_Daemon *start_daemon(struct http_server *s, int listen_fd, const char *cert_pem,
                                       const char *key_pem)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert_pem},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key_pem},
        {MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)s->ca_pem},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

    if (s->tls) {
        flags |= MHD_USE_TLS;
    }
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, s,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape,
        NULL, MHD_OPTION_CONNECTION_LIMIT, s->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_THREAD_STACK_SIZE, (size_t)(1 << 20), MHD_OPTION_ARRAY,
        s->tls ? tls : none, MHD_OPTION_END);
}

int http_server_start(const struct http_server_config *cfg, struct http_server **ret,
                      struct ferry_error *err)
{
    struct http_server *s = ferry_xcalloc(1, sizeof(*s));

    s->name = ferry_strdup(cfg->name);
    s->listen_fd = cfg->listen_fd;
    s->tls = cfg->cert_pem != NULL;
    s->max_body = cfg->max_body ? cfg->max_body : DEFAULT_MAX_BODY;
    s->body_timeout_ns =
        (cfg->body_timeout_ms ? cfg->body_timeout_ms : DEFAULT_BODY_TIMEOUT_MS) * FERRY_NS_PER_MS;
    s->handle = cfg->handle;
    s->refuse = cfg->refuse ? cfg->refuse : http_answer_error;
    s->ctx = cfg->ctx;
    s->ca_pem = ferry_strdup(cfg->ca_pem);
    s->max_connections =
        cfg->max_connections ? cfg->max_connections : (unsigned)DEFAULT_MAX_CONNECTIONS;
    s->strangers = s->tls ? strangers_new(STRANGER_TIMEOUT_S) : NULL;
    s->daemon = start_daemon(s, s->listen_fd, cfg->cert_pem, cfg->key_pem);
    if (!s->daemon) {
        int saved = errno;

        strangers_free(s->strangers);
        close(s->listen_fd);
        ferry_fail(err, FERRY_FATAL, "starting the HTTP server '%s': %s", s->name,
                   s->tls ? "the certificate, key or CA cannot be used" : strerror(saved));
        free(s->name);
        free(s->ca_pem);
        free(s);
        return -FERRY_FATAL;
    }
    *ret = s;
    return 0;
}

bool http_server_stopping(const struct http_server *s)
{
    return atomic_load(&s->stopping);
}

static void end_retired(struct http_server *s, size_t i)
{
    MHD_stop_daemon(s->retired[i].daemon);
    close(s->retired[i].listen_fd);
    s->n_retired--;
    memmove(&s->retired[i], &s->retired[i + 1], (s->n_retired - i) * sizeof(s->retired[0]));
}

static bool is_idle(struct MHD_Daemon *d)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info && info->num_connections == 0;
}

int http_server_renew(struct http_server *s, const char *cert_pem, const char *key_pem,
                      struct ferry_error *err)
{
    ferry_cleanup_fd int fd = fcntl(s->listen_fd, F_DUPFD_CLOEXEC, 0);

    for (size_t i = s->n_retired; i-- > 0;) {
        if (is_idle(s->retired[i].daemon)) {
            end_retired(s, i);
        }
    }
    if (s->n_retired == RETIRED_MAX) {
        end_retired(s, 0);
    }
    struct MHD_Daemon *fresh = fd < 0 ? NULL : start_daemon(s, fd, cert_pem, key_pem);
    if (!fresh) {
        return ferry_fail(err, FERRY_FATAL,
                          "HTTP server '%s': the new certificate or key cannot be used", s->name);
    }
    MHD_quiesce_daemon(s->daemon);
    s->retired[s->n_retired++] = (struct retired){s->daemon, s->listen_fd};
    s->daemon = fresh;
    s->listen_fd = ferry_take_fd(&fd);
    return 0;
}

int http_server_leave(struct http_server *s, int64_t deadline_ns)
{
    int fd = MHD_quiesce_daemon(s->daemon);

    /* A connection that was being accepted just now shows a moment later. */
    for (int quiet = 0; quiet < QUIET_MS && ferry_ms_left(deadline_ns) > 0; quiet++) {
        if (atomic_load(&s->unserved) > 0) {
            quiet = 0;
        }
        ferry_sleep_ms(1);
    }
    http_server_stop(s);
    return fd;
}

void http_server_stop(struct http_server *s)
{
    if (!s) {
        return;
    }
    atomic_store(&s->stopping, true);
    MHD_stop_daemon(s->daemon); /* closes the listening socket */
    while (s->n_retired > 0) {
        end_retired(s, 0);
    }
    strangers_free(s->strangers);
    free(s->name);
    free(s->ca_pem);
    free(s);
}
