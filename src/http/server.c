/* Theory of operation. libmicrohttpd runs one thread per connection. It calls `on_request` several
 * times for a request: first with an empty state, when the headers are there, then per piece of
 * body (server_body.c), then once more to answer. What is known of the peer is found once per
 * connection and kept in the socket context. */
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
#include "http/server_priv.h"

enum {
    DEFAULT_MAX_BODY = 1 << 20,
    DEFAULT_MAX_CONNECTIONS = 512,
    DEFAULT_BODY_MEMORY = 64 << 20,
    IDLE_TIMEOUT_S = 300,
    LEAVING_PART = 4, /* beyond the places: connections that were ended and still clean up */
    QUIET_MS = 30,
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

static void enter(struct http_server *s, struct MHD_Connection *c, struct connection_state *state)
{
    int fd = server_peer_info(c, MHD_CONNECTION_INFO_CONNECTION_FD).connect_fd;

    if (s->doors && fd > 0) {
        doors_enter(s->doors, &state->visitor, fd,
                    server_peer_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS).client_addr);
    }
}

static void on_connection(void *cls, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    struct connection_state *state = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        state = ferry_xcalloc(1, sizeof(*state));
        *socket_context = state;
        enter(s, c, state);
        set_unserved(s, state, true);
    } else if (state) {
        if (s->doors) {
            doors_leave(s->doors, &state->visitor);
        }
        set_unserved(s, state, false);
        free(state);
        *socket_context = NULL;
    }
}

void server_load_peer(struct http_exchange *x)
{
    struct connection_state *state = state_of(x->connection);

    if (x->has_peer) {
        return;
    }
    x->has_peer = true;
    if (!state) {
        server_peer_find(x->connection, x->server->tls, &x->peer);
        return;
    }
    if (!state->known) {
        server_peer_find(x->connection, x->server->tls, &state->peer);
        state->known = true;
        if (state->peer.certificate && x->server->doors) {
            doors_set_known(x->server->doors, &state->visitor, true);
        }
    }
    x->peer = state->peer;
}

void server_set_phase(struct http_exchange *x, enum doors_phase phase)
{
    struct connection_state *state = state_of(x->connection);

    x->phase = phase;
    if (x->server->doors && state) {
        doors_set_phase(x->server->doors, &state->visitor, phase);
    }
}

void http_vouch(struct http_exchange *x)
{
    struct connection_state *state = state_of(x->connection);

    x->vouched = true;
    if (x->server->doors && state && !state->visitor.known) {
        state->vouched = true;
        doors_set_known(x->server->doors, &state->visitor, true);
        server_set_phase(x, x->phase);
    }
}

void http_disown(struct http_exchange *x)
{
    struct connection_state *state = state_of(x->connection);

    x->disowned = true;
    if (x->server->doors && state && state->visitor.known) {
        state->vouched = false;
        doors_set_known(x->server->doors, &state->visitor, false);
        server_set_phase(x, x->phase);
    }
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
    if (x->n_headers < SERVER_HEADERS_MAX) {
        x->headers[x->n_headers].name = ferry_strdup(name);
        x->headers[x->n_headers].value = ferry_strdup(value);
        x->n_headers++;
    }
}

static void put_headers(const struct http_exchange *x, const char *content_type,
                        struct MHD_Response *response)
{
    if (content_type) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    }
    for (size_t i = 0; i < x->n_headers; i++) {
        MHD_add_response_header(response, x->headers[i].name, x->headers[i].value);
    }
}

void server_release(struct http_exchange *x)
{
    x->result = MHD_queue_response(x->connection, x->held_status, x->held);
    MHD_destroy_response(x->held);
    x->held = NULL;
    x->sent = true;
}

/* What is answered before the body was read is kept until it is clear when to send it. */
static void queue_response(struct http_exchange *x, int status, const char *content_type,
                           struct MHD_Response *response)
{
    if (x->answered) {
        MHD_destroy_response(response);
        return;
    }
    put_headers(x, content_type, response);
    x->answered = true;
    x->held = response;
    x->held_status = (unsigned)status;
    if (x->whole) {
        server_release(x);
    }
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
    x->streams = true;
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
    if (x->held) {
        MHD_destroy_response(x->held);
    }
    server_body_done(x);
    free(x->method);
    free(x->path);
    free(x);
}

static enum MHD_Result answer_request(struct http_exchange *x)
{
    x->whole = true;
    if (x->held) {
        server_release(x);
        return x->result;
    }
    server_load_peer(x);
    server_set_phase(x, DOORS_ANSWERING);
    if (server_body_whole(x)) {
        x->server->handle(x, x->server->ctx);
    }
    if (!x->answered) {
        struct ferry_error err;

        ferry_fail(&err, FERRY_FATAL, "no answer to %s %s", x->method, x->path);
        x->server->refuse(x, 500, &err);
    }
    return x->answered ? x->result : MHD_NO;
}

static struct http_exchange *exchange_new(struct http_server *s, struct MHD_Connection *c,
                                          const char *method, const char *path)
{
    struct http_exchange *x = ferry_xcalloc(1, sizeof(*x));

    x->server = s;
    x->connection = c;
    x->begin_ns = ferry_now_ns();
    x->method = ferry_strdup(method);
    x->path = ferry_strdup(path);
    return x;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_size, void **request_state)
{
    struct http_server *s = cls;
    struct http_exchange *x = *request_state;

    (void)version;
    if (!x) {
        x = exchange_new(s, c, method, url);
        set_unserved(s, state_of(c), true);
        *request_state = x;
        return server_body_begin(x);
    }
    if (*upload_size > 0) {
        enum MHD_Result more = server_body_take(x, upload_data, *upload_size);

        *upload_size = 0;
        return more;
    }
    return x->sent ? MHD_YES : answer_request(x);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **request_state,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *s = cls;
    struct http_exchange *x = *request_state;
    struct connection_state *state = state_of(c);

    (void)code;
    set_unserved(s, state, false);
    if (s->doors && state) {
        if (state->vouched) {
            state->vouched = false;
            doors_set_known(s->doors, &state->visitor, false);
        }
        doors_set_phase(s->doors, &state->visitor, DOORS_IDLE);
    }
    if (!x) {
        return;
    }
    if (x->streams) { /* which had no limit */
        MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S);
    }
    exchange_free(x);
    *request_state = NULL;
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
        NULL, MHD_OPTION_CONNECTION_LIMIT, s->max_connections + s->max_connections / LEAVING_PART,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)(1 << 20), MHD_OPTION_ARRAY, s->tls ? tls : none, MHD_OPTION_END);
}

/* Where nobody else's bodies count: at least for a few of the largest. */
static uint64_t own_memory(size_t max_body)
{
    uint64_t few = 2 * (uint64_t)body_budget_working(max_body);

    return few > DEFAULT_BODY_MEMORY ? few : DEFAULT_BODY_MEMORY;
}

static void server_free(struct http_server *s)
{
    doors_free(s->doors);
    body_budget_free(s->own_budget);
    free(s->name);
    free(s->ca_pem);
    free(s);
}

int http_server_start(const struct http_server_config *cfg, struct http_server **ret,
                      struct ferry_error *err)
{
    struct http_server *s = ferry_xcalloc(1, sizeof(*s));

    s->name = ferry_strdup(cfg->name);
    s->listen_fd = cfg->listen_fd;
    s->tls = cfg->cert_pem != NULL;
    s->max_body = cfg->max_body ? cfg->max_body : DEFAULT_MAX_BODY;
    s->handle = cfg->handle;
    s->admit = cfg->admit;
    s->refuse = cfg->refuse ? cfg->refuse : http_answer_error;
    s->ctx = cfg->ctx;
    s->ca_pem = ferry_strdup(cfg->ca_pem);
    s->max_connections =
        cfg->max_connections ? cfg->max_connections : (unsigned)DEFAULT_MAX_CONNECTIONS;
    struct doors_limits limits = doors_limits_of(s->max_connections, &cfg->doors);
    s->body_timeout_ns = limits.body_ms * FERRY_NS_PER_MS;
    s->doors = s->tls ? doors_new(s->name, &limits) : NULL;
    s->own_budget = cfg->budget ? NULL : body_budget_new(own_memory(s->max_body));
    s->budget = cfg->budget ? cfg->budget : s->own_budget;
    s->daemon = start_daemon(s, s->listen_fd, cfg->cert_pem, cfg->key_pem);
    if (!s->daemon) {
        int saved = errno;

        close(s->listen_fd);
        ferry_fail(err, FERRY_FATAL, "starting the HTTP server '%s': %s", s->name,
                   s->tls ? "the certificate, key or CA cannot be used" : strerror(saved));
        server_free(s);
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
    if (s->n_retired == SERVER_RETIRED_MAX) {
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
    server_free(s);
}
