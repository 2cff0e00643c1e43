/* Theory of operation
 *
 * A source accepted a unix connection: check who opened it, dial the target's relay, prove both
 * identities, pump. A target accepted a TCP connection: prove both identities, and only then dial
 * the hypervisor's socket, pump. The control channel carries one connection at a time: its slot is
 * taken by a connection that is proven, so nobody else can keep the rightful one out. Each step has
 * a deadline, and each ends early when the stop descriptor becomes readable. */
#include "relay/stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define DIAL_NS (10 * FERRY_NS_PER_S)
#define HANDSHAKE_NS (10 * FERRY_NS_PER_S)
#define UNIX_DIAL_NS (5 * FERRY_NS_PER_S)
#define UNIX_DIAL_SLICE_NS (100 * FERRY_NS_PER_MS)
/* The connection before may be about to end: a client that reconnects is not turned away for it. */
#define SLOT_NS (1 * FERRY_NS_PER_S)
#define SLOT_RETRY_NS (10 * FERRY_NS_PER_MS)
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
        [RELAY_STREAM_CLOSING] = "closing",
    };

    return names[state];
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static int check_local_peer(const struct relay_stream *s, int fd, struct ferry_error *err)
{
    struct ferry_peer peer;
    int rc = ferry_unix_peer(fd, &peer, err);

    if (rc < 0 || !s->spec->has_owner || peer.uid == s->spec->owner || peer.uid == 0 ||
        peer.uid == getuid()) {
        return rc;
    }
    return ferry_fail(err, FERRY_DENIED, "uid %u (pid %d) may not connect here", peer.uid,
                      (int)peer.pid);
}

static int take_slot(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + SLOT_NS;

    if (!s->slot) {
        return 0;
    }
    for (;;) {
        bool taken = false;

        if (atomic_compare_exchange_strong(s->slot, &taken, true)) {
            e->has_slot = true;
            return 0;
        }
        int64_t next = ferry_now_ns() + SLOT_RETRY_NS;
        if (next > deadline) {
            return ferry_fail(err, FERRY_CONFLICT, "the control channel is busy");
        }
        int rc = relay_net_wait(-1, 0, s->stop_fd, next, err);
        if (rc < 0 && rc != -FERRY_RETRY) {
            return rc;
        }
    }
}

static void leave_slot(const struct relay_stream *s, struct ends *e)
{
    if (e->has_slot) {
        e->has_slot = false;
        atomic_store(s->slot, false);
    }
}

static int prove(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    enum tls_role role = s->spec->role == RELAY_SOURCE ? TLS_CLIENT : TLS_SERVER;
    int64_t deadline = ferry_now_ns() + HANDSHAKE_NS;
    int rc = tls_conn_new(s->credentials, role, e->tcp_fd, s->spec->peer_node, &e->tls, err);

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

static bool worth_another_try(const struct ferry_error *err)
{
    /* A backlog that stays full shows as a time-out of the slice. */
    return err->sys == ETIMEDOUT || err->sys == EMFILE || err->sys == ENFILE;
}

static int dial_unix(const struct relay_stream *s, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + UNIX_DIAL_NS;

    for (;;) {
        int64_t slice = ferry_now_ns() + UNIX_DIAL_SLICE_NS;
        ferry_cleanup_fd int fd = ferry_unix_connect(s->channel->unix_path, slice, err);

        if (fd >= 0) {
            int rc = ferry_set_nonblock(fd, true, err);

            return rc < 0 ? rc : ferry_take_fd(&fd);
        }
        if (!worth_another_try(err) || slice > deadline) {
            return fd;
        }
        int rc = relay_net_wait(-1, 0, s->stop_fd, slice, err);
        if (rc < 0 && rc != -FERRY_RETRY) {
            return rc;
        }
    }
}

static int open_source(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    int rc;

    if ((rc = check_local_peer(s, e->unix_fd, err)) < 0 || (rc = take_slot(s, e, err)) < 0) {
        return rc;
    }
    e->tcp_fd = relay_net_dial(s->spec->address, s->channel->port, s->stop_fd,
                               ferry_now_ns() + DIAL_NS, err);
    return e->tcp_fd < 0 ? e->tcp_fd : prove(s, e, err);
}

static int open_target(const struct relay_stream *s, struct ends *e, struct ferry_error *err)
{
    int rc;

    relay_net_tune(e->tcp_fd);
    if ((rc = prove(s, e, err)) < 0 || (rc = take_slot(s, e, err)) < 0) {
        return rc;
    }
    e->unix_fd = dial_unix(s, err);
    return e->unix_fd < 0 ? e->unix_fd : 0;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

#define STREAM_FIELDS(s)                                                                           \
    F_STR("role", relay_role_name((s)->spec->role)), F_STR("key", (s)->spec->key),                 \
        F_STR("move", (s)->spec->move), F_INT("channel", (s)->channel->logical),                   \
        F_STR("node", (s)->spec->peer_node), F_STR("peer", (s)->stats->peer)

static void log_not_opened(const struct relay_stream *s, const struct ferry_error *err)
{
    if (err->cls == FERRY_CANCELLED) {
        ferry_info("stream ended before it opened", STREAM_FIELDS(s), F_ERR(err));
    } else {
        ferry_warn("stream not opened", STREAM_FIELDS(s), F_ERR(err));
    }
}

static void log_closed(const struct relay_stream *s, int64_t opened_ns, const char *reason,
                       bool expected)
{
    FERRY_LOG(expected ? FERRY_LOG_INFO : FERRY_LOG_WARN, "stream closed", STREAM_FIELDS(s),
              F_UINT("bytesIn", atomic_load(&s->stats->bytes.in)),
              F_UINT("bytesOut", atomic_load(&s->stats->bytes.out)),
              F_UINT("dropped", atomic_load(&s->stats->bytes.dropped)),
              F_INT("ms", (ferry_now_ns() - opened_ns) / FERRY_NS_PER_MS), F_STR("reason", reason));
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
                                    .counters = &s->stats->bytes};
    int64_t opened_ns = ferry_now_ns();
    struct ferry_error err;

    atomic_store(&s->stats->state, RELAY_STREAM_OPEN);
    ferry_info("stream opened", STREAM_FIELDS(s));
    int end = relay_pump_run(&pump, &err);
    atomic_store(&s->stats->state, RELAY_STREAM_CLOSING);
    /* The local side first: it must not wait for what happens on the network. */
    close_unix(e);
    leave_slot(s, e);
    log_closed(s, opened_ns, end < 0 ? err.msg : relay_end_text((enum relay_end)end),
               end >= 0 || end == -FERRY_CANCELLED);
    if (end == RELAY_LOCAL_LEFT) {
        relay_net_linger(e->tcp_fd, s->stop_fd, ferry_now_ns() + LINGER_NS);
    }
}

void relay_stream_run(const struct relay_stream *s, int fd)
{
    bool source = s->spec->role == RELAY_SOURCE;
    struct ends e = {.unix_fd = source ? fd : -1, .tcp_fd = source ? -1 : fd};
    struct ferry_error err;
    int rc = source ? open_source(s, &e, &err) : open_target(s, &e, &err);

    if (rc < 0) {
        log_not_opened(s, &err);
    } else {
        run_open(s, &e);
    }
    close_unix(&e);
    leave_slot(s, &e);
    tls_conn_free(e.tls);
    ferry_closep(&e.tcp_fd);
}
