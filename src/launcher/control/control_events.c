#include "launcher/control/control_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

struct reader {
    struct http_server *server;
    struct events *events;
    uint64_t since;
    struct ferry_buf pending;
    size_t sent; /* of `pending` */
};

static ssize_t reader_read(void *ctx, char *buf, size_t max)
{
    struct reader *r = ctx;

    if (http_server_stopping(r->server)) {
        return -1;
    }
    if (r->sent == r->pending.len) {
        r->pending.len = r->sent = 0;
        events_read(r->events, &r->since, ferry_now_ns() + FERRY_NS_PER_S, &r->pending);
    }
    size_t n = r->pending.len - r->sent;
    n = n < max ? n : max;
    if (n) {
        memcpy(buf, r->pending.data + r->sent, n);
        r->sent += n;
    }
    return (ssize_t)n;
}

static void reader_done(void *ctx)
{
    struct reader *r = ctx;

    ferry_buf_done(&r->pending);
    free(r);
}

void control_events(struct http_exchange *x, struct events *events)
{
    const char *since = http_query(x, "since");
    long long from = 0;
    struct ferry_error err;

    if (!ferry_str_empty(since) && ferry_parse_int(since, 0, INT64_MAX, &from, &err) < 0) {
        ferry_wrap(&err, "since");
        http_answer_error(x, 0, &err);
        return;
    }
    struct reader *r = ferry_xcalloc(1, sizeof(*r));
    r->server = http_exchange_server(x);
    r->events = events;
    r->since = (uint64_t)from;
    http_answer_stream(x, 200, "application/x-ndjson",
                       &(struct http_stream){.read = reader_read, .done = reader_done, .ctx = r});
}
