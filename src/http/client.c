#include "http/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum {
    POOL_MAX = 8,
    DEFAULT_TIMEOUT_MS = 30000,
    CONNECT_TIMEOUT_MS = 5000,
    ERROR_BODY_MAX = 65536,
    TOKEN_MAX = 65536
};
static const size_t BODY_MAX = (size_t)256 << 20;

struct http_client {
    char *base_url, *unix_socket, *connect_to, *ca_pem, *token_file;
    bool any_certificate;
    pthread_mutex_t lock; /* guards all below */
    char *cert_pem, *key_pem;
    char *token;
    struct stat token_seen; /* the file as `token` was read from it */
    CURL *pool[POOL_MAX];
    size_t n_pool;
};

static void curl_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_client_new(const struct http_client_config *cfg, struct http_client **ret,
                    struct ferry_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, curl_start);
    if (ferry_str_starts(cfg->base_url, "https:") && !cfg->ca_pem && !cfg->any_certificate) {
        return ferry_fail(err, FERRY_INVALID, "%s: no certificate authority given", cfg->base_url);
    }
    struct http_client *c = ferry_xcalloc(1, sizeof(*c));
    c->base_url = ferry_strdup(cfg->base_url);
    c->unix_socket = ferry_strdup(cfg->unix_socket);
    c->connect_to = cfg->connect_to ? ferry_asprintf("::%s", cfg->connect_to) : NULL;
    c->ca_pem = ferry_strdup(cfg->ca_pem);
    c->cert_pem = ferry_strdup(cfg->cert_pem);
    c->key_pem = ferry_strdup(cfg->key_pem);
    c->token = ferry_strdup(cfg->token);
    c->token_file = ferry_strdup(cfg->token_file);
    c->any_certificate = cfg->any_certificate;
    pthread_mutex_init(&c->lock, NULL);
    *ret = c;
    return 0;
}

static void forget_certificate(struct http_client *c)
{
    if (c->key_pem) {
        explicit_bzero(c->key_pem, strlen(c->key_pem));
    }
    free(c->cert_pem);
    free(c->key_pem);
}

void http_client_renew(struct http_client *c, const char *cert_pem, const char *key_pem)
{
    pthread_mutex_lock(&c->lock);
    forget_certificate(c);
    c->cert_pem = ferry_strdup(cert_pem);
    c->key_pem = ferry_strdup(key_pem);
    pthread_mutex_unlock(&c->lock);
}

static void forget_token(struct http_client *c)
{
    if (c->token) {
        explicit_bzero(c->token, strlen(c->token));
    }
    free(c->token);
    c->token = NULL;
}

void http_client_free(struct http_client *c)
{
    if (!c) {
        return;
    }
    for (size_t i = 0; i < c->n_pool; i++) {
        curl_easy_cleanup(c->pool[i]);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->base_url);
    free(c->unix_socket);
    free(c->connect_to);
    free(c->ca_pem);
    forget_certificate(c);
    forget_token(c);
    free(c->token_file);
    free(c);
}

void http_reply_done(struct http_reply *r)
{
    ferry_buf_done(&r->body);
}

/* ---- handles ----------------------------------------------------------------------------------
 */

static CURL *handle_get(struct http_client *c)
{
    CURL *h = NULL;

    pthread_mutex_lock(&c->lock);
    if (c->n_pool > 0) {
        h = c->pool[--c->n_pool];
    }
    pthread_mutex_unlock(&c->lock);
    if (!h) {
        h = curl_easy_init();
    } else {
        curl_easy_reset(h); /* options go, open connections stay */
    }
    return h;
}

static void handle_put(struct http_client *c, CURL *h)
{
    pthread_mutex_lock(&c->lock);
    if (c->n_pool < POOL_MAX) {
        c->pool[c->n_pool++] = h;
        h = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    if (h) {
        curl_easy_cleanup(h);
    }
}

static void set_blob(CURL *h, CURLoption option, const char *pem, unsigned flags)
{
    struct curl_blob blob = {.data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = flags};

    curl_easy_setopt(h, option, &blob);
}

/* Copied: it may be replaced while the call is under way. */
static void set_certificate(struct http_client *c, CURL *h)
{
    pthread_mutex_lock(&c->lock);
    if (c->cert_pem && c->key_pem) {
        set_blob(h, CURLOPT_SSLCERT_BLOB, c->cert_pem, CURL_BLOB_COPY);
        set_blob(h, CURLOPT_SSLKEY_BLOB, c->key_pem, CURL_BLOB_COPY);
    }
    pthread_mutex_unlock(&c->lock);
}

/* State of one transfer besides the handle. */
struct transfer {
    CURL *h;
    struct curl_slist *headers, *connect_to;
    int dirfd; /* directory of the unix socket: makes its path short */
    char problem[CURL_ERROR_SIZE];
    char *url;
};

static int use_unix_socket(struct http_client *c, struct transfer *t, struct ferry_error *err)
{
    const char *slash = strrchr(c->unix_socket, '/');
    ferry_cleanup_free char *dir =
        slash ? ferry_strndup(c->unix_socket, (size_t)(slash - c->unix_socket)) : ferry_strdup(".");
    char path[108];

    t->dirfd = open(*dir ? dir : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (t->dirfd < 0) {
        return ferry_fail_errno(err, errno, "opening directory %s", dir);
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", t->dirfd,
             slash ? slash + 1 : c->unix_socket);
    curl_easy_setopt(t->h, CURLOPT_UNIX_SOCKET_PATH, path);
    /* The short path means another socket when the descriptor number is used again. */
    curl_easy_setopt(t->h, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(t->h, CURLOPT_FORBID_REUSE, 1L);
    return 0;
}

static void add_header(struct transfer *t, const char *name, const char *value)
{
    ferry_cleanup_free char *line = ferry_asprintf("%s: %s", name, value);

    t->headers = curl_slist_append(t->headers, line);
}

/* A file that cannot be read leaves the token as it was: the server says when it has ended. */
static void refresh_token_locked(struct http_client *c)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct stat st;

    if (!c->token_file || stat(c->token_file, &st) < 0 ||
        (st.st_ino == c->token_seen.st_ino && st.st_size == c->token_seen.st_size &&
         st.st_mtim.tv_sec == c->token_seen.st_mtim.tv_sec &&
         st.st_mtim.tv_nsec == c->token_seen.st_mtim.tv_nsec) ||
        ferry_read_file(c->token_file, TOKEN_MAX, &text, NULL) < 0 || text.len == 0) {
        return;
    }
    text.data[strcspn(text.data, "\r\n")] = '\0';
    forget_token(c);
    c->token = ferry_buf_take(&text);
    c->token_seen = st;
}

static void add_token(struct http_client *c, struct transfer *t)
{
    pthread_mutex_lock(&c->lock);
    refresh_token_locked(c);
    ferry_cleanup_free char *bearer = c->token ? ferry_asprintf("Bearer %s", c->token) : NULL;
    pthread_mutex_unlock(&c->lock);
    if (bearer) {
        add_header(t, "Authorization", bearer);
        explicit_bzero(bearer, strlen(bearer));
    }
}

static int transfer_begin(struct http_client *c, struct transfer *t, const char *path,
                          struct ferry_error *err)
{
    *t = (struct transfer){.dirfd = -1};
    t->h = handle_get(c);
    if (!t->h) {
        return ferry_fail(err, FERRY_RETRY, "no memory for an HTTP call");
    }
    t->url = ferry_asprintf("%s%s", c->base_url, path);
    curl_easy_setopt(t->h, CURLOPT_URL, t->url);
    curl_easy_setopt(t->h, CURLOPT_ERRORBUFFER, t->problem);
    curl_easy_setopt(t->h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(t->h, CURLOPT_PROXY, "");
    curl_easy_setopt(t->h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(t->h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(t->h, CURLOPT_TCP_KEEPALIVE, 1L);
    if (c->connect_to) {
        t->connect_to = curl_slist_append(NULL, c->connect_to);
        curl_easy_setopt(t->h, CURLOPT_CONNECT_TO, t->connect_to);
    }
    if (c->any_certificate) {
        curl_easy_setopt(t->h, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(t->h, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (c->ca_pem) {
        set_blob(t->h, CURLOPT_CAINFO_BLOB, c->ca_pem, CURL_BLOB_NOCOPY);
    }
    set_certificate(c, t->h);
    add_token(c, t);
    add_header(t, "Expect", ""); /* no wait for 100-continue */
    return c->unix_socket ? use_unix_socket(c, t, err) : 0;
}

static void transfer_end(struct http_client *c, struct transfer *t)
{
    if (t->h) {
        handle_put(c, t->h);
    }
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    free(t->url);
    ferry_closep(&t->dirfd);
}

static int transfer_error(const struct http_client *c, const struct transfer *t, CURLcode rc,
                          struct ferry_error *err)
{
    const char *what = t->problem[0] ? t->problem : curl_easy_strerror(rc);
    const char *where = c->unix_socket  ? c->unix_socket
                        : c->connect_to ? c->connect_to + 2
                                        : c->base_url;

    switch (rc) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        return ferry_fail(err, FERRY_DENIED, "talking to %s: %s", where, what);
    case CURLE_URL_MALFORMAT:
        return ferry_fail(err, FERRY_INVALID, "talking to %s: %s", where, what);
    default:
        return ferry_fail(err, FERRY_RETRY, "talking to %s: %s", where, what);
    }
}

/* ---- calls ------------------------------------------------------------------------------------
 */

struct body {
    struct ferry_buf *buf;
    size_t max;
};

static size_t collect(char *data, size_t size, size_t n, void *ctx)
{
    struct body *b = ctx;

    return ferry_buf_append_capped(b->buf, data, size * n, b->max, NULL) < 0 ? 0 : size * n;
}

/* The text of `299 - "text"`, in which quotes and backslashes are escaped; cut to what fits. */
static void read_warning(const char *data, size_t len, char *to, size_t size)
{
    const char *end = data + len, *p = memchr(data, '"', len);
    size_t n = 0;

    if (!p) {
        return;
    }
    for (p++; p < end && *p != '"' && n + 1 < size; p++) {
        if (*p == '\\' && p + 1 < end) {
            p++;
        }
        to[n++] = *p;
    }
    to[n] = '\0';
}

static size_t collect_warning(char *data, size_t size, size_t n, void *ctx)
{
    struct http_reply *r = ctx;
    size_t len = size * n;

    if (len > 9 && strncasecmp(data, "Warning:", 8) == 0 && !r->warning[0]) {
        read_warning(data, len, r->warning, sizeof(r->warning));
    }
    return len;
}

int http_client_call(struct http_client *c, const struct http_call *call, struct http_reply *ret,
                     struct ferry_error *err)
{
    struct http_reply reply = {0};
    struct body body = {&reply.body, call->max_reply ? call->max_reply : BODY_MAX};
    struct transfer t;
    long status = 0;
    int rc = transfer_begin(c, &t, call->path, err);

    if (rc < 0) {
        transfer_end(c, &t);
        return rc;
    }
    curl_easy_setopt(t.h, CURLOPT_CUSTOMREQUEST, call->method);
    curl_easy_setopt(t.h, CURLOPT_TIMEOUT_MS,
                     (long)(call->timeout_ms ? call->timeout_ms : DEFAULT_TIMEOUT_MS));
    curl_easy_setopt(t.h, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(t.h, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(t.h, CURLOPT_HEADERFUNCTION, collect_warning);
    curl_easy_setopt(t.h, CURLOPT_HEADERDATA, &reply);
    if (call->body) {
        curl_easy_setopt(t.h, CURLOPT_POSTFIELDS, call->body);
        curl_easy_setopt(t.h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
        add_header(&t, "Content-Type",
                   call->content_type ? call->content_type : "application/json");
    } else if (strcmp(call->method, "POST") == 0 || strcmp(call->method, "PUT") == 0) {
        curl_easy_setopt(t.h, CURLOPT_POSTFIELDS, "");
        curl_easy_setopt(t.h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    }
    if (call->accept) {
        add_header(&t, "Accept", call->accept);
    }
    curl_easy_setopt(t.h, CURLOPT_HTTPHEADER, t.headers);
    CURLcode code = curl_easy_perform(t.h);
    if (code != CURLE_OK) {
        rc = transfer_error(c, &t, code, err);
        http_reply_done(&reply);
    } else {
        curl_easy_getinfo(t.h, CURLINFO_RESPONSE_CODE, &status);
        reply.status = (int)status;
        ferry_buf_reserve(&reply.body, 0);
        *ret = reply;
    }
    transfer_end(c, &t);
    return rc;
}

struct stream_run {
    const struct http_stream_call *call;
    struct transfer *t;
    int *status;
    struct ferry_buf *error_body;
    bool stopped;
    int64_t last_data_ns;
    bool idle;
};

/* Called per line; the empty one ends the headers. */
static size_t stream_header(char *data, size_t size, size_t n, void *ctx)
{
    struct stream_run *run = ctx;
    const char *type = NULL;
    long status = 0;

    run->last_data_ns = ferry_now_ns();
    curl_easy_getinfo(run->t->h, CURLINFO_RESPONSE_CODE, &status);
    if (size * n == 2 && memcmp(data, "\r\n", 2) == 0 && status >= 200) {
        curl_easy_getinfo(run->t->h, CURLINFO_CONTENT_TYPE, &type);
        *run->status = (int)status;
        run->call->on_head(run->call->ctx, (int)status, type ? type : "");
    }
    return size * n;
}

static size_t stream_data(char *data, size_t size, size_t n, void *ctx)
{
    struct stream_run *run = ctx;
    size_t len = size * n;
    long status = 0;

    curl_easy_getinfo(run->t->h, CURLINFO_RESPONSE_CODE, &status);
    *run->status = (int)status;
    run->last_data_ns = ferry_now_ns();
    if (status != 200) {
        if (run->error_body) {
            ferry_buf_append_capped(run->error_body, data, len, ERROR_BODY_MAX, NULL);
        }
        return len;
    }
    if (!run->call->on_data(run->call->ctx, data, len)) {
        run->stopped = true;
        return 0;
    }
    run->last_data_ns = ferry_now_ns(); /* the reader's time is not the sender's silence */
    return len;
}

static int stream_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct stream_run *run = ctx;

    (void)a, (void)b, (void)c, (void)d;
    if (run->call->stop && run->call->stop(run->call->ctx)) {
        run->stopped = true;
        return 1;
    }
    if (run->call->idle_ms &&
        ferry_now_ns() - run->last_data_ns > run->call->idle_ms * FERRY_NS_PER_MS) {
        run->idle = true;
        return 1;
    }
    return 0;
}

int http_client_stream(struct http_client *c, const struct http_stream_call *call, int *ret_status,
                       struct ferry_buf *ret_error_body, struct ferry_error *err)
{
    struct transfer t;
    int rc = transfer_begin(c, &t, call->path, err);
    struct stream_run run = {.call = call,
                             .t = &t,
                             .status = ret_status,
                             .error_body = ret_error_body,
                             .last_data_ns = ferry_now_ns()};

    if (rc < 0) {
        transfer_end(c, &t);
        return rc;
    }
    *ret_status = 0;
    curl_easy_setopt(t.h, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(t.h, CURLOPT_WRITEFUNCTION, stream_data);
    curl_easy_setopt(t.h, CURLOPT_WRITEDATA, &run);
    if (call->on_head) {
        curl_easy_setopt(t.h, CURLOPT_HEADERFUNCTION, stream_header);
        curl_easy_setopt(t.h, CURLOPT_HEADERDATA, &run);
    }
    curl_easy_setopt(t.h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(t.h, CURLOPT_XFERINFOFUNCTION, stream_progress);
    curl_easy_setopt(t.h, CURLOPT_XFERINFODATA, &run);
    if (call->accept) {
        add_header(&t, "Accept", call->accept);
    }
    curl_easy_setopt(t.h, CURLOPT_HTTPHEADER, t.headers);
    CURLcode code = curl_easy_perform(t.h);
    if (code == CURLE_OK) {
        long status = 0;

        curl_easy_getinfo(t.h, CURLINFO_RESPONSE_CODE, &status);
        *ret_status = (int)status;
    } else if (run.stopped) {
        rc = ferry_fail(err, FERRY_CANCELLED, "stopped reading from %s", c->base_url);
    } else if (run.idle) {
        rc = ferry_fail(err, FERRY_RETRY, "nothing came from %s for %d s", c->base_url,
                        call->idle_ms / 1000);
    } else {
        rc = transfer_error(c, &t, code, err);
    }
    transfer_end(c, &t);
    return rc;
}

char *http_escape(const char *s)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;

        if ((ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') ||
            strchr("-_.~", ch)) {
            ferry_buf_append(&b, s, 1);
        } else {
            ferry_buf_printf(&b, "%%%02X", ch);
        }
    }
    return ferry_buf_take(&b);
}
