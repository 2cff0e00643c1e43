/* Theory of operation. A body is read after its caller was found to be allowed to send it, counts
 * in the budget of all bodies as it grows, and has a deadline from its headers on. What is refused
 * before it is whole gets its answer in one of two ways. A sender that waits to be told (Expect),
 * or announces more than is worth reading, is answered at once, and its connection is closed. Of
 * any other the rest is thrown away first, since most senders read nothing before they have sent
 * all, and would lose the answer with the connection. */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/server_priv.h"

enum {
    DROP_FACTOR = 8,              /* of the largest body, of those that are known */
    DROP_OF_STRANGERS = 64 << 10, /* bytes */
};

/* ---- what it announces -------------------------------------------------------------------------
 */

static bool has_body(const struct http_exchange *x)
{
    const char *length = http_header(x, "Content-Length");

    return (length && strcmp(length, "0") != 0) || http_header(x, "Transfer-Encoding");
}

/* Bytes; 0 when it does not say. */
static unsigned long long announced(const struct http_exchange *x)
{
    const char *length = http_header(x, "Content-Length");
    long long n = 0;

    if (length && ferry_parse_int(length, 0, INT64_MAX, &n, NULL) < 0) {
        return INT64_MAX;
    }
    return (unsigned long long)n;
}

static bool is_known(const struct http_exchange *x)
{
    return !x->server->doors || x->vouched || (x->peer.certificate && !x->disowned);
}

static size_t drop_most(const struct http_exchange *x)
{
    return is_known(x) ? DROP_FACTOR * x->server->max_body : DROP_OF_STRANGERS;
}

/* ---- refusing ----------------------------------------------------------------------------------
 */

static void refuse_large(struct http_exchange *x)
{
    struct ferry_error err;

    ferry_fail(&err, FERRY_INVALID, "request body larger than %zu bytes", x->terms.max_body);
    x->server->refuse(x, 413, &err);
}

static void refuse_busy(struct http_exchange *x)
{
    struct ferry_error err;

    ferry_fail(&err, FERRY_RETRY, "too many request bodies at once, try again");
    http_add_header(x, "Retry-After", "1");
    x->server->refuse(x, 429, &err);
}

static void forget(struct http_exchange *x)
{
    ferry_buf_done(&x->body);
    body_budget_hold(x->server->budget, x->terms.rank, 0, &x->budget_held);
}

void server_body_done(struct http_exchange *x)
{
    forget(x);
}

/* After an answer was made before the body was read. */
static enum MHD_Result refused_early(struct http_exchange *x)
{
    if (!x->held) {
        return MHD_NO;
    }
    if (http_header(x, "Expect") || announced(x) > drop_most(x)) {
        MHD_add_response_header(x->held, MHD_HTTP_HEADER_CONNECTION, "close");
        server_release(x);
        return x->result;
    }
    return MHD_YES;
}

static enum MHD_Result drop(struct http_exchange *x, size_t n)
{
    forget(x);
    x->dropped += n;
    return x->dropped > drop_most(x) ? MHD_NO : MHD_YES;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

enum MHD_Result server_body_begin(struct http_exchange *x)
{
    const struct http_server *s = x->server;

    x->terms = (struct http_terms){.max_body = s->max_body, .rank = BODY_OPERATOR};
    if (!has_body(x)) {
        return MHD_YES;
    }
    server_load_peer(x);
    if (s->admit && !s->admit(x, &x->terms, s->ctx)) {
        return refused_early(x);
    }
    if (announced(x) > x->terms.max_body) {
        refuse_large(x);
        return refused_early(x);
    }
    server_set_phase(x, DOORS_BODY);
    if (!body_budget_begin(s->budget, x->terms.rank, (size_t)announced(x), &x->budget_held)) {
        refuse_busy(x);
        return refused_early(x);
    }
    return MHD_YES;
}

enum MHD_Result server_body_take(struct http_exchange *x, const char *data, size_t n)
{
    const struct http_server *s = x->server;
    size_t len = x->body.len + n;

    if (ferry_now_ns() - x->begin_ns > s->body_timeout_ns) {
        /* Whoever sends a byte now and then would hold a connection for good. */
        ferry_info("request body timed out", F_STR("server", s->name));
        return MHD_NO;
    }
    if (x->answered) {
        return drop(x, n);
    }
    if (len > x->terms.max_body) {
        refuse_large(x);
        return drop(x, n);
    }
    if (body_budget_reading(len) > x->budget_held &&
        !body_budget_hold(s->budget, x->terms.rank, body_budget_reading(len), &x->budget_held)) {
        refuse_busy(x);
        return drop(x, n);
    }
    ferry_buf_append(&x->body, data, n);
    return MHD_YES;
}

bool server_body_whole(struct http_exchange *x)
{
    size_t need = body_budget_working(x->body.len);

    if (need > x->budget_held &&
        !body_budget_hold(x->server->budget, x->terms.rank, need, &x->budget_held)) {
        refuse_busy(x);
        return false;
    }
    return true;
}
