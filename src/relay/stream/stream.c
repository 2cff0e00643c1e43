/* Theory of operation
 *
 * A stream over ferry/1 is a session (relay/session). The rest is about raw TLS and plain TCP,
 * where a stream is its connection and ends with it. A source accepted a unix connection: check who
 * opened it, dial the target's relay, prove both identities, pump. A target accepted a TCP
 * connection: prove both identities, and only then dial the hypervisor's socket, pump. The control
 * channel carries one connection at a time: its slot is taken by a connection that is proven, so
 * nobody else can keep the rightful one out. Each step has a deadline, and each ends early when the
 * stop descriptor becomes readable. */
#include "relay/stream/stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "relay/stream/link.h"
#include "relay/stream/local.h"
#include "relay/stream/session.h"

#define DIAL_NS (10 * FERRY_NS_PER_S)
#define HANDSHAKE_NS (10 * FERRY_NS_PER_S)
#define LINGER_NS (10 * FERRY_NS_PER_S)

/* The two ends of a stream. */
struct ends {
    int unix_fd, tcp_fd;
    struct tls_conn *tls;
    bool has_slot;
};

const char *relay_stream_state_name(int state)
{
    static const char *const names[] = {
        [RELAY_STREAM_CONNECTING] = "connecting",
        [RELAY_STREAM_OPEN] = "open",
        [RELAY_STREAM_AWAY] = "away",
        [RELAY_STREAM_CLOSING] = "closing",
    };

    return names[state];
}

enum relay_stream_state relay_stream_state_of(enum protocol_state state)
{
    switch (state) {
    case PROTOCOL_OPENING:
        return RELAY_STREAM_CONNECTING;
    case PROTOCOL_OPEN:
        return RELAY_STREAM_OPEN;
    case PROTOCOL_AWAY:
        return RELAY_STREAM_AWAY;
    default:
        return RELAY_STREAM_CLOSING;
    }
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static int prove(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    bool source = s->spec->role == RELAY_SOURCE;
    int64_t deadline = ferry_now_ns() + HANDSHAKE_NS;
    struct tls_conn_config config;

    relay_link_tls_config(s->spec, source ? s->env->client : s->env->server, e->tcp_fd, &config);
    int rc = tls_conn_new(&config, &e->tls, err);

    while (rc == 0) {
        enum tls_io io = tls_conn_handshake(e->tls, err);

        if (io == TLS_OK) {
            return 0;
        }
        if (io == TLS_FAILED || io == TLS_EOF) {
            return -(int)err->cls;
        }
        rc = relay_net_wait(e->tcp_fd, io == TLS_WANT_READ ? POLLIN : POLLOUT, s->stop_fd, deadline,
                            err);
    }
    return ferry_wrap(err, "TLS handshake");
}

static int open_source(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    int rc;

    if ((rc = relay_local_check(s->spec, e->unix_fd, err)) < 0 ||
        (rc = relay_local_take_slot(s->slot, s->stop_fd, err)) < 0) {
        return rc;
    }
    e->has_slot = true;
    const struct relay_net_way way = {s->spec->address, s->channel->port, s->spec->interface};
    e->tcp_fd = relay_net_dial(&way, s->stop_fd, ferry_now_ns() + DIAL_NS, err);
    return e->tcp_fd < 0 ? e->tcp_fd : prove(s, e, err);
}

/* Without TLS the address is all that tells the source from others. */
static int check_address(const struct relay_stream *s, struct ferry_error *err)
{
    if (s->spec->mode != RELAY_PLAIN ||
        relay_net_same_host(s->stats->peer, s->spec->peer_address)) {
        return 0;
    }
    return ferry_fail(err, FERRY_DENIED, "peer refused: only %s may connect without TLS",
                      s->spec->peer_address);
}

static int take_place(const struct relay_stream *s, struct ferry_error *err)
{
    return s->take_place(s->place_ctx)
               ? 0
               : ferry_fail(err, FERRY_RETRY, "the move has as many streams as it may");
}

static int open_target(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    int rc;

    relay_net_tune(e->tcp_fd);
    if ((rc = check_address(s, err)) < 0 || (rc = prove(s, e, err)) < 0 ||
        (rc = take_place(s, err)) < 0 ||
        (rc = relay_local_take_slot(s->slot, s->stop_fd, err)) < 0) {
        return rc;
    }
    e->has_slot = true;
    e->unix_fd = relay_local_dial(s->spec, s->channel->unix_path, s->stop_fd, err);
    return e->unix_fd < 0 ? e->unix_fd : 0;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

void relay_stream_not_opened(const struct relay_stream *s, const struct ferry_error *err)
{
    enum ferry_log_level level = err->cls == FERRY_CANCELLED ? FERRY_LOG_INFO : FERRY_LOG_WARN;
    int64_t silent = 0;

    if (s->spec->role == RELAY_TARGET) {
        silent = relay_log_limit_ask(s->env->log_limit, s->stats->peer, err->msg, ferry_now_ns());
    }
    if (silent < 0) {
        return;
    }
    if (silent > 0) {
        FERRY_LOG(level, "stream not opened", RELAY_STREAM_FIELDS(s), F_ERR(err),
                  F_INT("alikeNotLogged", silent));
    } else {
        FERRY_LOG(level, "stream not opened", RELAY_STREAM_FIELDS(s), F_ERR(err));
    }
}

static void log_closed(const struct relay_stream *s, int64_t opened_ns, const char *reason,
                       bool expected)
{
    FERRY_LOG(expected ? FERRY_LOG_INFO : FERRY_LOG_WARN, "stream closed", RELAY_STREAM_FIELDS(s),
              F_UINT("bytesIn", atomic_load(&s->stats->bytes.in)),
              F_UINT("bytesOut", atomic_load(&s->stats->bytes.out)),
              F_UINT("dropped", atomic_load(&s->stats->bytes.dropped)),
              F_INT("ms", (ferry_now_ns() - opened_ns) / FERRY_NS_PER_MS), RELAY_STREAM_WAY(s),
              F_STR("reason", reason));
}

static void close_unix(struct ends *e)
{
    ferry_closep(&e->unix_fd);
    e->unix_fd = -1;
}

static void run_open(const struct relay_stream *s, struct ends *e)
{
    const struct relay_pump pump = {.unix_fd = e->unix_fd,
                                    .tcp_fd = e->tcp_fd,
                                    .tls = e->tls,
                                    .stop_fd = s->stop_fd,
                                    .plain = s->spec->mode == RELAY_PLAIN,
                                    .rate = s->rate,
                                    .counters = &s->stats->bytes};
    int64_t opened_ns = ferry_now_ns();
    struct ferry_error err;

    atomic_store(&s->stats->state, RELAY_STREAM_OPEN);
    ferry_info("stream opened", RELAY_STREAM_FIELDS(s), RELAY_STREAM_WAY(s));
    int end = relay_pump_run(&pump, &err);
    atomic_store(&s->stats->state, RELAY_STREAM_CLOSING);
    /* The local side first: it must not wait for what happens on the network. */
    close_unix(e);
    relay_local_leave_slot(s->slot, &e->has_slot);
    log_closed(s, opened_ns, end < 0 ? err.msg : relay_end_text((enum relay_end)end),
               end >= 0 || end == -FERRY_CANCELLED);
    if (end == RELAY_LOCAL_LEFT || end == RELAY_BOTH_ENDED) {
        relay_net_linger(e->tcp_fd, s->stop_fd, ferry_now_ns() + LINGER_NS);
    }
}

static void run_raw(const struct relay_stream *s, int fd)
{
    bool source = s->spec->role == RELAY_SOURCE;
    struct ends e = {.unix_fd = source ? fd : -1, .tcp_fd = source ? -1 : fd};
    struct ferry_error err;
    int rc = source ? open_source(s, &e, &err) : open_target(s, &e, &err);

    if (rc < 0) {
        relay_stream_not_opened(s, &err);
    } else {
        run_open(s, &e);
    }
    close_unix(&e);
    relay_local_leave_slot(s->slot, &e.has_slot);
    tls_conn_free(e.tls);
    ferry_closep(&e.tcp_fd);
}

enum relay_leave relay_stream_run(const struct relay_stream *s, int fd, struct session **session)
{
    if (s->spec->mode != RELAY_FERRY) {
        run_raw(s, fd);
        return RELAY_OVER;
    }
    if (*session) {
        return relay_session_go_on(session);
    }
    return s->spec->role == RELAY_SOURCE ? relay_session_run_source(s, fd, session)
                                         : relay_session_run_target(s, fd, session);
}
