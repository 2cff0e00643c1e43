/* Theory of operation
 *
 * relay/protocol decides, this file moves bytes for it: the loop that its header prescribes. Each
 * pass lets every part do what it can without waiting; only when nothing moved does the thread
 * sleep in poll(), until a socket is ready, a connection was handed over (relay/registry), the
 * group stops, or the protocol's next deadline has come. What is known not to be ready is not
 * tried: a short read or write means that poll() will tell.
 *
 * The unix side. A process that closes its socket ends both directions, and that is watched for
 * also while nothing is to be read or written: before the stream has opened, or while it is away.
 * What it sent before is delivered first, whatever time that takes; what still comes for it is
 * thrown away; then the stream is reset, with words by which both logs know that this was no
 * failure. */
#include "relay/stream/session_priv.h"

#include <errno.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "relay/stream/local.h"

enum {
    BATCH = 512 * 1024,
    MORE = 128 * 1024, /* a read of this size: by the time it is worked off there will be more */
    VEC_MAX = 64,
    PASSES_BETWEEN_POLLS = 16, /* a busy stream still sees the other descriptors */
};
#define LEAVE_NS (1 * FERRY_NS_PER_S)
#define PARK_NS (500 * FERRY_NS_PER_MS) /* for a stream that is over to say its last word */
/* Nothing listens at the target's port: its relay is gone, and with it the stream. But a firewall
 * that is being reloaded says the same for a moment. */
#define REFUSED_OPENING_NS (3 * FERRY_NS_PER_S)
#define REFUSED_AWAY_NS (10 * FERRY_NS_PER_S)

/* ---- the connection ---------------------------------------------------------------------------
 */

static void lost(struct session *x, int64_t now, const char *why)
{
    relay_link_close(&x->link);
    protocol_disconnected(x->p, now, why);
}

/* The peer will say the same next time: while nothing was carried, that is the end. */
static void judge_failure(struct session *x, const struct ferry_error *err, int64_t now)
{
    bool opening = protocol_state(x->p) == PROTOCOL_OPENING;
    int64_t limit = opening ? REFUSED_OPENING_NS : REFUSED_AWAY_NS;

    if (err->sys != ECONNREFUSED) {
        x->refused_ns = 0;
    } else if (x->refused_ns == 0) {
        x->refused_ns = now;
    }
    if ((opening && err->cls == FERRY_DENIED) || (x->refused_ns && now - x->refused_ns >= limit)) {
        protocol_give_up(x->p, err->msg);
    }
}

static void connection_failed(struct session *x, struct ferry_error *err, int64_t now)
{
    if (x->s->spec->role == RELAY_SOURCE) {
        judge_failure(x, err, now);
    }
    lost(x, now, err->msg);
}

static bool dial_if_due(struct session *x, int64_t now)
{
    struct ferry_error err;

    if (x->link.state != RELAY_LINK_NONE || protocol_dial_at(x->p) > now) {
        return false;
    }
    protocol_dialling(x->p);
    if (relay_link_dial(&x->link, x->s->spec, x->s->channel->port, x->s->env->client, now, &err) <
        0) {
        connection_failed(x, &err, now);
    }
    return true;
}

static bool step_link(struct session *x, int64_t now)
{
    bool dialling = x->link.state == RELAY_LINK_CONNECTING || x->link.state == RELAY_LINK_PROVING;
    struct ferry_error err;
    int rc = relay_link_step(&x->link, now, &err);

    if (rc < 0 && dialling) {
        ferry_wrap(&err, "%s", x->s->stats->peer);
        connection_failed(x, &err, now);
    } else if (rc > 0 && x->link.state == RELAY_LINK_UP) {
        x->refused_ns = 0;
        protocol_connected(x->p, now);
    }
    return rc != 0;
}

static bool read_link(struct session *x, int64_t now)
{
    size_t total = 0;

    while (x->link.state == RELAY_LINK_UP && x->link.readable && total < BATCH) {
        struct ferry_error err;
        void *where;
        size_t n = 0, space = protocol_recv_space(x->p, &where);

        switch (tls_conn_read(x->link.tls, where, space, &n, &err)) {
        case TLS_OK:
            protocol_received(x->p, n, now);
            total += n;
            break;
        case TLS_WANT_READ:
            x->link.readable = false;
            break;
        case TLS_WANT_WRITE:
            x->link.readable = false;
            x->link.blocked = x->link.read_waits = true;
            break;
        case TLS_EOF:
            ferry_fail(&err, FERRY_PEER, "the peer ended the connection");
            connection_failed(x, &err, now);
            return true;
        case TLS_FAILED:
            connection_failed(x, &err, now);
            return true;
        }
    }
    return total > 0;
}

/* Whether all that was written is with the kernel. */
static bool flush(struct session *x, int64_t now)
{
    struct ferry_error err;

    switch (tls_conn_flush(x->link.tls, &err)) {
    case TLS_OK:
        x->link.readable |= x->link.read_waits;
        x->link.blocked = x->link.read_waits = false;
        return true;
    case TLS_FAILED:
        connection_failed(x, &err, now);
        return false;
    default:
        x->link.blocked = true;
        return false;
    }
}

static bool write_link(struct session *x, int64_t now)
{
    struct iovec parts[2];
    bool moved = false;

    if (x->link.state != RELAY_LINK_UP || (x->link.blocked && !flush(x, now))) {
        return false;
    }
    while (tls_conn_unsent(x->link.tls) < BATCH && protocol_output(x->p, now, parts) > 0) {
        struct ferry_error err;
        size_t n = 0;
        enum tls_io io = tls_conn_write(x->link.tls, parts[0].iov_base, parts[0].iov_len, &n, &err);

        if (io == TLS_FAILED) {
            connection_failed(x, &err, now);
            return true;
        }
        if (io != TLS_OK) {
            break;
        }
        protocol_sent(x->p, n);
        moved = true;
    }
    flush(x, now);
    return moved;
}

static bool hang_up(struct session *x, int64_t now)
{
    struct iovec parts[2];
    bool dialling = x->link.state == RELAY_LINK_CONNECTING || x->link.state == RELAY_LINK_PROVING;

    if (dialling && protocol_state(x->p) == PROTOCOL_CLOSED) {
        relay_link_close(&x->link); /* nobody needs it any more */
        return true;
    }
    if (x->link.state != RELAY_LINK_UP) {
        return false;
    }
    switch (protocol_hangup(x->p)) {
    case PROTOCOL_DROP:
        lost(x, now, NULL);
        return true;
    case PROTOCOL_FLUSH:
        if (tls_conn_unsent(x->link.tls) == 0 && protocol_output(x->p, now, parts) == 0) {
            relay_link_end(&x->link, now);
            return true;
        }
        return false;
    case PROTOCOL_KEEP:
        break;
    }
    return false;
}

/* Another connection for this stream has come in. */
static bool take_arrival(struct session *x, int64_t now)
{
    struct relay_arrival a;
    struct hello_refusal refusal;

    if (!x->live || !x->woken) {
        return false;
    }
    x->woken = false;
    if (!relay_live_take(x->live, &a)) {
        return false;
    }
    if (protocol_attach(x->p, &a.hello, now, &refusal) < 0) {
        uint8_t answer[HELLO_ANSWER_MAX];

        ferry_warn("connection refused", RELAY_STREAM_FIELDS(x->s), F_STR("from", a.peer),
                   F_STR("code", frame_refusal_name(refusal.code)), F_STR("error", refusal.text));
        relay_arrival_answer(&a, answer, hello_put_refused(answer, &refusal));
        return true;
    }
    relay_live_attached(x->live, a.hello.epoch);
    relay_link_adopt(&x->link, a.fd, a.tls);
    return true;
}

/* ---- the unix socket --------------------------------------------------------------------------
 */

static bool drop_rest(struct session *x, int64_t now)
{
    struct iovec vec[VEC_MAX];
    size_t total = 0;
    int n = protocol_write_vec(x->p, vec, VEC_MAX);

    for (int i = 0; i < n; i++) {
        total += vec[i].iov_len;
    }
    x->dropped += total;
    protocol_unix_written(x->p, total, now);
    return total > 0;
}

static bool write_unix(struct session *x, int64_t now)
{
    struct iovec vec[VEC_MAX];
    struct msghdr m = {.msg_iov = vec};

    if (x->deaf) {
        return drop_rest(x, now);
    }
    m.msg_iovlen = x->writable ? (size_t)protocol_write_vec(x->p, vec, VEC_MAX) : 0;
    if (m.msg_iovlen == 0) {
        return false;
    }
    ssize_t n = sendmsg(x->unix_fd, &m, MSG_NOSIGNAL);
    if (n > 0) {
        size_t total = 0;

        for (size_t i = 0; i < m.msg_iovlen; i++) {
            total += vec[i].iov_len;
        }
        x->writable = (size_t)n == total;
        x->burst += (size_t)n;
        protocol_unix_written(x->p, (size_t)n, now);
        return true;
    }
    if (errno == EPIPE || errno == ECONNRESET) {
        x->deaf = true;
        return true;
    }
    if (errno != EAGAIN && errno != EINTR) {
        char text[128];

        snprintf(text, sizeof(text), "writing the unix side: %s", strerror(errno));
        protocol_unix_failed(x->p, text, now);
        return true;
    }
    x->writable = errno == EINTR;
    return false;
}

static bool pass_on_end(struct session *x, int64_t now)
{
    if (x->unix_fd < 0 || !protocol_shutdown_due(x->p)) {
        return false;
    }
    (void)shutdown(x->unix_fd, SHUT_WR); /* fails only when it has left: seen elsewhere */
    protocol_shutdown_done(x->p, now);
    return true;
}

static void unix_ended(struct session *x, int64_t now)
{
    x->eof = true;
    x->readable = false;
    protocol_unix_eof(x->p, now);
}

static bool read_unix(struct session *x, int64_t now)
{
    void *where;

    if (!x->readable || x->eof || now < x->rate_ns) {
        return false;
    }
    size_t space = protocol_read_space(x->p, &where);
    if (space == 0) {
        return false;
    }
    ssize_t n = recv(x->unix_fd, where, space, 0);
    if (n > 0) {
        x->readable = (size_t)n == space || n >= MORE;
        x->burst += (size_t)n;
        protocol_unix_read(x->p, (size_t)n);
        x->rate_ns = relay_rate_spend(x->s->rate, (size_t)n, now);
        return true;
    }
    if (n == 0 || errno == ECONNRESET) {
        /* Reset: it closed without reading all that was delivered. What it sent came first. */
        x->deaf = x->deaf || n < 0;
        unix_ended(x, now);
        return true;
    }
    if (errno != EAGAIN && errno != EINTR) {
        char text[128];

        snprintf(text, sizeof(text), "reading the unix side: %s", strerror(errno));
        protocol_unix_failed(x->p, text, now);
        return true;
    }
    x->readable = errno == EINTR;
    return false;
}

/* The process has left while nothing moved. What it wrote before is still to be delivered; without
 * that a stream that has not opened need not. */
static bool notice_left(struct session *x, int64_t now)
{
    enum protocol_state state = protocol_state(x->p);
    int unread = 0;

    if (!x->hup || x->left || x->eof) {
        return false;
    }
    x->left = true;
    (void)ioctl(x->unix_fd, FIONREAD, &unread);
    if (state == PROTOCOL_OPENING && unread == 0) {
        protocol_unix_failed(x->p, SESSION_LEFT, now);
    } else if (state == PROTOCOL_OPENING || state == PROTOCOL_AWAY) {
        session_tell_left(x);
    }
    return true;
}

static bool unix_pass(struct session *x, int64_t now)
{
    struct protocol_stats st;

    if (x->unix_fd < 0) {
        return false;
    }
    bool moved = write_unix(x, now);
    moved |= pass_on_end(x, now);
    moved |= read_unix(x, now);
    moved |= notice_left(x, now);
    if ((x->hup || x->deaf) && x->eof) {
        protocol_stats(x->p, &st);
        if (st.acked == st.read) {
            protocol_unix_failed(x->p, SESSION_LEFT, now);
        }
    }
    if (protocol_unix_over(x->p)) {
        close(x->unix_fd);
        x->unix_fd = -1;
        relay_local_leave_slot(x->s->slot, &x->has_slot);
    }
    return moved;
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

/* Its part of the relay's memory may have changed. */
static void take_share(struct session *x)
{
    uint32_t share = relay_memory_share(x->s->env->memory);

    if (share != x->share) {
        x->share = share;
        protocol_set_window_max(x->p, share);
        protocol_set_send_max(x->p, share);
    }
}

/* A connection that was good when it was made: not a byte of it is taken any more once the node at
 * its other end has been removed. */
static bool end_if_denied(struct session *x, int64_t now)
{
    unsigned version = tls_denials_version(x->s->env->denials);

    if (version == x->denials || x->link.state != RELAY_LINK_UP) {
        return false;
    }
    x->denials = version;
    if (!tls_conn_is_denied(x->link.tls)) {
        return false;
    }
    lost(x, now, NULL);
    protocol_part(x->p, "the peer's node was removed from the site");
    return true;
}

static bool pass(struct session *x, int64_t now)
{
    take_share(x);
    bool moved = take_arrival(x, now);

    moved |= step_link(x, now);
    moved |= end_if_denied(x, now);
    moved |= read_link(x, now);
    moved |= unix_pass(x, now);
    protocol_tick(x->p, now);
    moved |= write_link(x, now);
    moved |= hang_up(x, now);
    moved |= unix_pass(x, now);
    moved |= dial_if_due(x, now);
    session_tell_changes(x, now);
    return moved;
}

static int64_t sleep_until(const struct session *x)
{
    int64_t at = protocol_deadline(x->p);
    bool step = x->link.state != RELAY_LINK_NONE && x->link.state != RELAY_LINK_UP;

    at = step && x->link.deadline_ns < at ? x->link.deadline_ns : at;
    at = (x->stopping || x->parking) && x->leave_ns < at ? x->leave_ns : at;
    return x->readable && x->rate_ns > 0 && x->rate_ns < at ? x->rate_ns : at;
}

/* Whether a hang-up says that the process has left. After our own end was passed on, it says no
 * more than that the process has ended its side, too: that shows when it is read. */
static bool hup_tells(const struct session *x)
{
    return x->eof || !protocol_shutdown_passed(x->p);
}

/* What to ask poll() about the unix socket. Without a wish it reports only a hang-up, and that for
 * ever, so it is watched for that only while it is news. */
static struct pollfd watch_unix(struct session *x)
{
    struct iovec one;
    void *where;
    short events = 0;

    if (x->unix_fd < 0) {
        return (struct pollfd){.fd = -1};
    }
    if (!x->readable && !x->eof && protocol_read_space(x->p, &where) > 0) {
        events |= POLLIN;
    }
    if (!x->writable && !x->deaf && protocol_write_vec(x->p, &one, 1) > 0) {
        events |= POLLOUT;
    }
    bool news = !x->hup && !x->deaf && hup_tells(x);
    return (struct pollfd){.fd = events || news ? x->unix_fd : -1, .events = events};
}

static struct pollfd watch_link(const struct session *x)
{
    short events = x->link.want;

    if (x->link.state == RELAY_LINK_UP) {
        events = (short)((x->link.readable ? 0 : POLLIN) | (x->link.blocked ? POLLOUT : 0));
    }
    return (struct pollfd){.fd = x->link.fd, .events = events};
}

static int timeout_ms(const struct session *x, bool at_once)
{
    int64_t at = sleep_until(x);

    if (at_once || at == PROTOCOL_NEVER) {
        return at_once ? 0 : -1;
    }
    return ferry_ms_left(at) + 1;
}

static int wait_for_events(struct session *x, struct pollfd *p, nfds_t count, bool at_once)
{
    int64_t now = ferry_now_ns();
    int64_t until = at_once ? now : relay_spin_until(&x->spin, x->burst, now);
    int n = 0;

    x->burst = 0;
    if (now < until) {
        for (; n == 0 && now < until; now = ferry_now_ns()) {
            n = poll(p, count, 0);
            if (n == 0) {
                sched_yield(); /* whoever is to answer may need this CPU */
            }
        }
        relay_spin_over(&x->spin, until, now);
    }
    return n != 0 ? n : poll(p, count, timeout_ms(x, at_once));
}

static void told_to_leave(struct session *x, int64_t now)
{
    if (atomic_load(x->s->pausing)) {
        x->parking = true;
        x->leave_ns = now + PARK_NS;
    } else {
        x->stopping = true;
        x->leave_ns = now + LEAVE_NS;
        protocol_cancel(x->p, "ended by its node agent or operator", now);
    }
}

static void wait_for_more(struct session *x, bool at_once)
{
    struct pollfd p[4] = {
        {.fd = x->stopping || x->parking ? -1 : x->s->stop_fd, .events = POLLIN},
        {.fd = x->live ? relay_live_fd(x->live) : -1, .events = POLLIN},
        watch_unix(x),
        watch_link(x),
    };
    int n = wait_for_events(x, p, 4, at_once);

    if (n == 0 && !at_once && x->link.state == RELAY_LINK_UP) {
        tls_conn_trim(x->link.tls);
    }
    if (n <= 0) {
        return;
    }
    if (p[0].revents) {
        told_to_leave(x, ferry_now_ns());
    }
    x->woken |= p[1].revents != 0;
    x->readable |= (p[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    x->writable |= (p[2].revents & (POLLOUT | POLLHUP | POLLERR)) != 0;
    x->hup |= (p[2].revents & POLLHUP) && hup_tells(x);
    x->link.readable |= (p[3].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (p[3].revents & POLLOUT && x->link.state == RELAY_LINK_UP) {
        flush(x, ferry_now_ns());
    }
}

static bool over(const struct session *x, int64_t now)
{
    bool gone = x->link.state == RELAY_LINK_NONE;

    if (x->stopping && (gone || now >= x->leave_ns)) {
        return true;
    }
    if (x->parking && (protocol_state(x->p) != PROTOCOL_CLOSED || now >= x->leave_ns)) {
        return true;
    }
    return protocol_state(x->p) == PROTOCOL_CLOSED && gone && x->unix_fd < 0;
}

static void loop(struct session *x)
{
    for (unsigned n = 1;; n++) {
        int64_t now = ferry_now_ns();
        bool moved = pass(x, now);

        if (over(x, now)) {
            return;
        }
        if (!moved || n % PASSES_BETWEEN_POLLS == 0) {
            wait_for_more(x, moved);
        }
    }
}

void session_finish(struct session *x)
{
    struct hello_tombstone stone;

    relay_link_close(&x->link);
    ferry_closep(&x->unix_fd);
    relay_local_leave_slot(x->s->slot, &x->has_slot);
    session_tell_end(x);
    if (x->live) {
        protocol_tombstone(x->p, &stone);
        relay_registry_leave(x->s->registry, x->live, &stone,
                             ferry_now_ns() + x->s->spec->resume_window_ns + PROTOCOL_GRACE);
    }
    protocol_free(x->p);
}

enum relay_leave relay_session_go_on(struct session **x)
{
    struct relay_memory *memory = (*x)->s->env->memory;

    (*x)->parking = false;
    (*x)->share = 0;
    relay_memory_join(memory);
    loop(*x);
    relay_memory_leave(memory);
    if ((*x)->parking && protocol_state((*x)->p) != PROTOCOL_CLOSED) {
        return RELAY_PARKED;
    }
    session_finish(*x);
    free(*x);
    *x = NULL;
    return RELAY_OVER;
}

void session_config(const struct relay_stream *s, struct protocol_config *ret)
{
    *ret = (struct protocol_config){.channel = (uint32_t)s->channel->logical};
    protocol_config_defaults(ret);
    ret->resume_window_ns = s->spec->resume_window_ns;
    ret->block_size = relay_memory_block_of(relay_memory_share(s->env->memory));
    snprintf(ret->move, sizeof(ret->move), "%s", s->spec->move);
    memcpy(ret->instance, s->env->instance, sizeof(ret->instance));
}

struct session *session_new(const struct relay_stream *s)
{
    struct session *x = ferry_xcalloc(1, sizeof(*x));
    int64_t now = ferry_now_ns();

    *x = (struct session){.s = s,
                          .link = RELAY_LINK_INIT,
                          .unix_fd = -1,
                          .readable = true,
                          .writable = true,
                          .born_ns = now,
                          .stats_ns = now};
    return x;
}

static int start_source(struct session *x, struct ferry_error *err)
{
    const struct relay_stream *s = x->s;
    struct protocol_config config;
    int rc;

    if ((rc = relay_local_check(s->spec, x->unix_fd, err)) < 0 ||
        (rc = relay_local_take_slot(s->slot, s->stop_fd, err)) < 0) {
        return rc;
    }
    x->has_slot = true;
    session_config(s, &config);
    if (RAND_bytes(config.id, sizeof(config.id)) != 1) {
        return ferry_fail(err, FERRY_RETRY, "no random bytes for a stream id");
    }
    x->p = protocol_new_source(&config, ferry_now_ns());
    return 0;
}

enum relay_leave relay_session_run_source(const struct relay_stream *s, int unix_fd,
                                          struct session **ret)
{
    struct session *x = session_new(s);
    struct ferry_error err;

    x->unix_fd = unix_fd;
    int rc = start_source(x, &err);
    if (rc == 0) {
        *ret = x;
        return relay_session_go_on(ret);
    }
    relay_local_leave_slot(s->slot, &x->has_slot);
    free(x);
    if (rc == -FERRY_CANCELLED && atomic_load(s->pausing)) {
        return RELAY_FRESH;
    }
    relay_stream_not_opened(s, &err);
    close(unix_fd);
    return RELAY_OVER;
}
