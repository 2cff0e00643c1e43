/* Theory of operation
 *
 * Two lanes share one thread: `out` reads the unix socket and writes TLS, `in` reads TLS and writes
 * the unix socket. A lane has one buffer; it is filled from its start when empty and emptied before
 * it is filled again, so copies stay aligned and memory is bounded. Each pass lets both lanes do
 * what they can; only when neither moved does the thread sleep in poll().
 *
 * Ends. A lane that reads the end of its input passes it on when its buffer is empty: as
 * close_notify, or as shutdown(SHUT_WR). Both lanes closed is the ordinary end. But a process that
 * dies or calls close() ends both directions, and the other relay must learn that too, or its
 * process would wait for ever on a connection whose other end is gone:
 *
 *   - here, a unix peer that closed shows as POLLHUP (a half-close does not) or EPIPE. What it sent
 *     is still passed on, up to its close_notify; what comes for it is thrown away. Then the caller
 *     sends FIN on TCP (relay_net_linger).
 *   - there, close_notify followed by FIN means just that: a half-close sends no FIN. Once what
 *     came was delivered, the stream is over.
 *
 * A connection that ends without close_notify is a failure: bytes may be missing. */
#include "relay/stream/pump.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "relay/common/net.h"
#include "relay/common/path.h"

enum {
    LANE_BYTES = 256 * 1024,
    LANE_ALIGN = 4096,
    PASSES_BETWEEN_POLLS = 16, /* a busy stream still sees the stop descriptor */
};
#define PATH_LIMIT_NS (10 * FERRY_NS_PER_S)
#define PATH_LOOK_NS (1 * FERRY_NS_PER_S)

struct lane {
    unsigned char *buf;
    size_t at, len; /* what is still to be written */
    bool eof;       /* the input has ended */
    bool closed;    /* and that was passed on */
};

struct state {
    const struct relay_pump *p;
    struct lane out, in;
    bool local_deaf;            /* nothing can be delivered to the unix side any more */
    bool local_hup, peer_rdhup; /* seen once; not polled for again */
    bool heard;                 /* something came from the peer */
    short want_unix, want_tcp;
    struct relay_path path;
    int64_t path_check_ns; /* when to look next */
    int64_t rate_ns;       /* the unix side is not to be read before */
};

const char *relay_end_text(enum relay_end end)
{
    static const char *const texts[] = {
        [RELAY_BOTH_ENDED] = "both sides ended",
        [RELAY_LOCAL_LEFT] = "local side closed",
        [RELAY_PEER_LEFT] = "peer closed",
    };

    return texts[end];
}

/* ---- out: unix -> TLS -------------------------------------------------------------------------
 */

/* All return 1 when something moved, 0 when not, negative on failure. */
static int fill_out(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->out;

    if (s->rate_ns > 0 && ferry_now_ns() < s->rate_ns) {
        return 0;
    }
    ssize_t n = recv(s->p->unix_fd, l->buf, LANE_BYTES, 0);
    if (n > 0) {
        s->rate_ns = s->p->rate ? relay_rate_spend(s->p->rate, (size_t)n, ferry_now_ns()) : 0;
        l->at = 0;
        l->len = (size_t)n;
        return 1;
    }
    if (n == 0 || errno == ECONNRESET) {
        /* Reset: it closed without reading all that was delivered. What it sent came first. */
        s->local_deaf = s->local_deaf || n < 0;
        l->eof = true;
        return 1;
    }
    if (errno == EAGAIN || errno == EINTR) {
        s->want_unix |= POLLIN;
        return 0;
    }
    return ferry_fail_errno(err, errno, "reading the unix side");
}

static int tls_wait(struct state *s, enum tls_io io, const struct ferry_error *err)
{
    if (io == TLS_FAILED) {
        return -(int)err->cls;
    }
    s->want_tcp |= io == TLS_WANT_READ ? POLLIN : POLLOUT;
    return 0;
}

static int empty_out(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->out;
    int moved = 0;

    while (l->len > 0) {
        size_t n = 0;
        enum tls_io io = tls_conn_write(s->p->tls, l->buf + l->at, l->len, &n, err);

        if (io != TLS_OK) {
            int rc = tls_wait(s, io, err);

            return rc < 0 ? rc : moved;
        }
        l->at += n;
        l->len -= n;
        atomic_fetch_add_explicit(&s->p->counters->out, n, memory_order_relaxed);
        moved = 1;
    }
    return moved;
}

/* What TLS has collected, to the kernel: 1 when all of it is there. */
static int flush_out(struct state *s, struct ferry_error *err)
{
    enum tls_io io = tls_conn_flush(s->p->tls, err);

    return io == TLS_OK ? 1 : tls_wait(s, io, err);
}

static int step_out(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->out;
    int moved = 0, flushed = flush_out(s, err);

    if (flushed <= 0) {
        return flushed;
    }
    if (l->len == 0 && !l->eof) {
        moved = fill_out(s, err);
    }
    if (moved >= 0 && l->len > 0) {
        int rc = empty_out(s, err);

        moved = rc < 0 ? rc : moved | rc;
        flushed = moved < 0 ? moved : flush_out(s, err);
        moved = flushed < 0 ? flushed : moved;
    }
    if (moved >= 0 && l->len == 0 && l->eof && !l->closed) {
        enum tls_io io = tls_conn_close_send(s->p->tls, err);

        if (io != TLS_OK) {
            int rc = tls_wait(s, io, err);

            return rc < 0 ? rc : moved;
        }
        l->closed = true;
        moved = 1;
    }
    return moved;
}

/* ---- in: TLS -> unix --------------------------------------------------------------------------
 */

/* A ClientHello where plain bytes were agreed on must not get to a hypervisor, which would wait for
 * the rest of it. Nothing that hypervisors say begins like this. */
static bool begins_tls(const unsigned char *p, size_t n)
{
    return n >= 6 && p[0] == 0x16 && p[1] == 0x03 && p[5] == 0x01;
}

static int refuse_tls(struct state *s, struct ferry_error *err)
{
    bool first = s->p->plain && !s->heard;

    s->heard = s->heard || s->in.len > 0;
    if (first && begins_tls(s->in.buf, s->in.len)) {
        return ferry_fail(err, FERRY_DENIED,
                          "peer refused: it speaks TLS, and this side plain TCP here");
    }
    return 0;
}

/* All that is there, as far as it fits. */
static int take_in(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->in;

    l->at = 0;
    while (l->len < LANE_BYTES) {
        size_t n = 0;
        enum tls_io io = tls_conn_read(s->p->tls, l->buf + l->len, LANE_BYTES - l->len, &n, err);

        if (io == TLS_EOF) {
            l->eof = true;
            return 1;
        }
        if (io != TLS_OK) {
            int rc = tls_wait(s, io, err);

            return rc < 0 ? rc : l->len > 0;
        }
        l->len += n;
    }
    return 1;
}

static int fill_in(struct state *s, struct ferry_error *err)
{
    int moved = take_in(s, err);
    int rc = moved < 0 ? moved : refuse_tls(s, err);

    return rc < 0 ? rc : moved;
}

static void drop_in(struct state *s)
{
    atomic_fetch_add_explicit(&s->p->counters->dropped, s->in.len, memory_order_relaxed);
    s->in.len = 0;
}

static int empty_in(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->in;

    if (s->local_deaf) {
        drop_in(s);
        return 1;
    }
    ssize_t n = send(s->p->unix_fd, l->buf + l->at, l->len, MSG_NOSIGNAL);
    if (n > 0) {
        l->at += (size_t)n;
        l->len -= (size_t)n;
        atomic_fetch_add_explicit(&s->p->counters->in, (uint64_t)n, memory_order_relaxed);
        return 1;
    }
    if (errno == EAGAIN || errno == EINTR) {
        s->want_unix |= POLLOUT;
        return 0;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
        s->local_deaf = true;
        drop_in(s);
        return 1;
    }
    return ferry_fail_errno(err, errno, "writing the unix side");
}

static int step_in(struct state *s, struct ferry_error *err)
{
    struct lane *l = &s->in;
    int moved = 0;

    if (l->len == 0 && !l->eof) {
        moved = fill_in(s, err);
    }
    if (moved >= 0 && l->len > 0) {
        int rc = empty_in(s, err);

        moved = rc < 0 ? rc : moved | rc;
    }
    if (moved >= 0 && l->len == 0 && l->eof && !l->closed) {
        (void)shutdown(s->p->unix_fd, SHUT_WR); /* fails only when it has left: seen elsewhere */
        l->closed = true;
        moved = 1;
    }
    return moved;
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

/* The end that has been reached, or -1. */
static int ended(const struct state *s)
{
    if (s->out.closed && s->in.closed) {
        return RELAY_BOTH_ENDED;
    }
    if (s->out.closed && (s->local_deaf || s->local_hup)) {
        return RELAY_LOCAL_LEFT;
    }
    if (s->in.closed && s->peer_rdhup && !s->p->plain) {
        return RELAY_PEER_LEFT;
    }
    return -1;
}

static int look_at_path(struct state *s, struct ferry_error *err)
{
    struct relay_path_sample sample;
    int64_t now = ferry_now_ns();

    if (now < s->path_check_ns) {
        return 0;
    }
    s->path_check_ns = now + PATH_LOOK_NS;
    if (relay_net_sample(s->p->tcp_fd, now, &sample) == 0 &&
        relay_path_dead(&s->path, &sample, PATH_LIMIT_NS)) {
        return ferry_fail_errno(err, ETIMEDOUT, "nothing heard from the peer for %d s",
                                (int)(PATH_LIMIT_NS / FERRY_NS_PER_S));
    }
    return 0;
}

static int wait_for_more(struct state *s, bool at_once, struct ferry_error *err)
{
    /* Without a wish a unix socket is watched for POLLHUP only, which poll() always reports: so it
     * is left out once that is known. */
    bool watch_unix = s->want_unix || (s->out.eof && !s->local_hup);
    short rdhup = s->in.eof && !s->peer_rdhup ? POLLRDHUP : 0;
    /* Without TLS both sides may have sent FIN with bytes still to be read here: that is no
     * failure, but poll() would report it for ever. */
    short broken = s->p->plain ? POLLERR : POLLERR | POLLHUP;
    bool watch_tcp = !s->p->plain || s->want_tcp;
    struct pollfd p[3] = {
        {.fd = s->p->stop_fd, .events = POLLIN},
        {.fd = watch_unix ? s->p->unix_fd : -1, .events = s->want_unix},
        {.fd = watch_tcp ? s->p->tcp_fd : -1, .events = (short)(s->want_tcp | rdhup)},
    };
    int64_t until = s->rate_ns > 0 && s->rate_ns < s->path_check_ns ? s->rate_ns : s->path_check_ns;
    int timeout = at_once ? 0 : ferry_ms_left(until) + 1;

    if (poll(p, 3, timeout) < 0 && errno != EINTR) {
        return ferry_fail_errno(err, errno, "waiting for a stream's sockets");
    }
    if (p[0].revents) {
        return ferry_fail(err, FERRY_CANCELLED, "stopped");
    }
    s->local_hup = s->local_hup || (p[1].revents & POLLHUP && s->out.eof);
    s->peer_rdhup = s->peer_rdhup || (p[2].revents & POLLRDHUP);
    if (p[2].revents & broken) {
        int e = relay_net_error(s->p->tcp_fd);

        return ferry_fail_errno(err, e ? e : ECONNRESET, "connection to the peer");
    }
    return look_at_path(s, err);
}

static int run(struct state *s, struct ferry_error *err)
{
    for (unsigned pass = 1;; pass++) {
        s->want_unix = s->want_tcp = 0;
        int out = step_out(s, err);
        int in = out < 0 ? out : step_in(s, err);

        if (in < 0) {
            return in;
        }
        int end = ended(s);
        if (end >= 0) {
            return end;
        }
        bool moved = out || in;
        if (!moved || pass % PASSES_BETWEEN_POLLS == 0) {
            int rc = wait_for_more(s, moved, err);

            if (rc < 0) {
                return rc;
            }
        }
    }
}

int relay_pump_run(const struct relay_pump *p, struct ferry_error *err)
{
    ferry_cleanup_free unsigned char *out = aligned_alloc(LANE_ALIGN, LANE_BYTES);
    ferry_cleanup_free unsigned char *in = aligned_alloc(LANE_ALIGN, LANE_BYTES);
    struct state s = {.p = p, .out = {.buf = out}, .in = {.buf = in}};

    if (!out || !in) {
        return ferry_fail_errno(err, ENOMEM, "making a stream's buffers");
    }
    return run(&s, err);
}
