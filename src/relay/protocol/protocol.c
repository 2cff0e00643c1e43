/* Theory of operation. A stream is two independent directions (struct protocol_out, struct
 * protocol_in) that share connections. A direction lives in sequence numbers: bytes, then FIN as
 * one more. What leaves the unix socket stays in out.store until the peer says that its unix side
 * has it; so whatever connection breaks, the rest can be sent again from the number that the peer
 * names in HELLO or HELLO-OK. What arrives goes to in.store until the unix side takes it; it is
 * delivered also while no connection is there, and what is replayed of it is dropped by its number.
 *
 * The end. A target is through when both directions are delivered and acknowledged; it says so in
 * its last ACK and leaves a tombstone. A source that is through stays in LINGER and redials if it
 * must, until it has heard that: the last acknowledgement, in either direction, cannot get lost. A
 * stream that breaks locally also lingers, to send what it still has and then RESET; the peer's
 * RESET, a refusal or the resume window end that. Each wait has a time that ends it: see
 * protocol_time.c. */
#include "relay/protocol/protocol_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"

static const char *const state_names[] = {
    [PROTOCOL_OPENING] = "opening",   [PROTOCOL_OPEN] = "open",     [PROTOCOL_AWAY] = "away",
    [PROTOCOL_DRAINING] = "draining", [PROTOCOL_LINGER] = "linger", [PROTOCOL_CLOSED] = "closed",
};
static_assert(FERRY_COUNT(state_names) == PROTOCOL_STATE_COUNT, "one name a state");

static const char *const end_names[] = {
    [PROTOCOL_FINISHED] = "finished",     [PROTOCOL_RESET] = "reset",
    [PROTOCOL_REFUSED] = "refused",       [PROTOCOL_EXPIRED] = "expired",
    [PROTOCOL_STATE_LOST] = "state lost", [PROTOCOL_UNREACHABLE] = "unreachable",
};
static_assert(FERRY_COUNT(end_names) == PROTOCOL_END_COUNT, "one name an end");

void protocol_config_defaults(struct protocol_config *config)
{
    config->resume_window_ns = PROTOCOL_RESUME_MAX;
    config->open_timeout_ns = 30 * FERRY_NS_PER_S;
    config->window_start = PROTOCOL_WINDOW_START;
    config->window_max = PROTOCOL_WINDOW_CEILING;
    config->send_max = PROTOCOL_WINDOW_CEILING;
    config->block_size = PROTOCOL_BLOCK;
}

struct protocol *protocol_make(const struct protocol_config *config, int64_t now)
{
    struct protocol *p = ferry_xcalloc(1, sizeof(*p));

    assert(config->window_max > 0 && config->window_max <= FRAME_WINDOW_MAX);
    p->config = *config;
    p->born_at = p->heard_at = p->moved_at = p->away_at = now;
    p->dial_at = PROTOCOL_NEVER;
    p->redial_ns = PROTOCOL_REDIAL_MIN;
    segments_init(&p->out.store, config->block_size, config->send_max);
    p->out.max = config->send_max;
    segments_init(&p->in.store, config->block_size, config->window_max);
    window_init(&p->in.window, config->window_start, config->window_max);
    protocol_in_reset(&p->in);
    return p;
}

struct protocol *protocol_new_source(const struct protocol_config *config, int64_t now)
{
    struct protocol *p = protocol_make(config, now);

    p->dial_at = now;
    return p;
}

struct protocol *protocol_new_target(const struct protocol_config *config, const struct hello *h,
                                     int64_t now)
{
    struct protocol *p = protocol_make(config, now);

    p->target = true;
    memcpy(p->config.id, h->id, FRAME_ID);
    memcpy(p->config.move, h->move, sizeof(p->config.move));
    p->config.channel = h->channel;
    p->epoch = h->epoch;
    p->out.limit = h->window;
    p->conn = PROTOCOL_CONN_HELLO;
    p->conn_at = now;
    return p;
}

struct protocol *protocol_free(struct protocol *p)
{
    if (p) {
        segments_done(&p->out.store);
        segments_done(&p->in.store);
        free(p);
    }
    return NULL;
}

void protocol_set_outcome(struct protocol *p, enum protocol_end end, unsigned code, bool by_peer,
                          const char *text)
{
    p->outcome = (struct protocol_outcome){.end = end, .code = code, .by_peer = by_peer};
    snprintf(p->outcome.text, sizeof(p->outcome.text), "%s", text);
}

void protocol_close(struct protocol *p)
{
    p->state = PROTOCOL_CLOSED;
    p->dial_at = PROTOCOL_NEVER;
}

void protocol_violation(struct protocol *p, const char *fmt, ...)
{
    /* Whoever has said what the outcome is has said it before. */
    if (p->state != PROTOCOL_LINGER) {
        char text[FRAME_TEXT_MAX + 1];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        protocol_set_outcome(p, PROTOCOL_RESET, FRAME_RESET_PROTOCOL, false, text);
        p->final = p->target && !p->hello_sent ? PROTOCOL_FINAL_REFUSED : PROTOCOL_FINAL_RESET;
    }
    protocol_close(p);
}

void protocol_break_off(struct protocol *p, enum frame_reset code, const char *text, int64_t now)
{
    protocol_set_outcome(p, PROTOCOL_RESET, code, false, text);
    p->in.discard = true;
    p->in.ack_now = false;
    p->in.ack_at = PROTOCOL_NEVER;
    segments_release(&p->in.store, p->in.store.end);
    segments_trim(&p->in.store);
    if (p->state == PROTOCOL_OPENING && p->target) {
        p->final = PROTOCOL_FINAL_REFUSED;
        protocol_close(p);
    } else if (!p->target && !p->resume && !p->hello_sent) {
        protocol_close(p); /* the target knows nothing of it */
    } else {
        p->state = PROTOCOL_LINGER;
        p->over_at = now;
    }
}

void protocol_check_done(struct protocol *p, int64_t now)
{
    if (!protocol_unix_live(p) || !p->in.fin_done || !p->out.eof ||
        p->out.acked != protocol_produced(p)) {
        return;
    }
    protocol_set_outcome(p, PROTOCOL_FINISHED, 0, false, "");
    if (!p->target) {
        p->state = PROTOCOL_LINGER;
        p->over_at = now;
        return;
    }
    if (p->conn == PROTOCOL_CONN_UP) {
        p->final = p->hello_sent ? PROTOCOL_FINAL_ACK : PROTOCOL_FINAL_HELLO_OK;
    }
    protocol_close(p);
}

void protocol_check_drained(struct protocol *p)
{
    bool bytes = p->in.store.begin < p->in.store.end;

    if (p->state == PROTOCOL_DRAINING &&
        (p->in.discard || (!bytes && (!p->in.fin || p->in.fin_done)))) {
        protocol_close(p);
    }
}

/* ---- the connection ---- */

int64_t protocol_dial_at(const struct protocol *p)
{
    return p->conn == PROTOCOL_CONN_NONE ? p->dial_at : PROTOCOL_NEVER;
}

void protocol_dialling(struct protocol *p)
{
    p->dial_at = PROTOCOL_NEVER;
}

static void forget_connection(struct protocol *p)
{
    p->conn = PROTOCOL_CONN_NONE;
    p->drop = p->hello_sent = p->answered = p->reset_sent = false;
    p->ping_due = p->ping_out = p->pong_due = false;
    if (p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_DRAINING) {
        p->final = PROTOCOL_FINAL_NONE;
    }
    protocol_in_reset(&p->in);
    protocol_out_reset(p);
}

void protocol_connected(struct protocol *p, int64_t now)
{
    assert(!p->target && p->conn == PROTOCOL_CONN_NONE);
    if (p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_DRAINING) {
        return;
    }
    p->conn = PROTOCOL_CONN_HELLO;
    p->conn_at = p->heard_at = now;
    p->dial_at = PROTOCOL_NEVER;
    p->epoch++;
}

void protocol_disconnected(struct protocol *p, int64_t now, const char *why)
{
    /* A HELLO without an answer may have arrived. */
    if (!p->confirmed && !p->target && p->hello_sent && !p->answered) {
        p->resume = true;
    }
    if (why && p->conn != PROTOCOL_CONN_NONE && p->answered && p->drop) {
        why = NULL; /* the refusal says more */
    }
    if (why) {
        snprintf(p->why, sizeof(p->why), "%s", why);
    }
    if (p->conn != PROTOCOL_CONN_NONE && p->state != PROTOCOL_AWAY) {
        p->away_at = now;
    }
    forget_connection(p);
    if (p->state == PROTOCOL_OPEN) {
        p->state = PROTOCOL_AWAY;
    }
    if (!p->target && p->state != PROTOCOL_CLOSED && p->state != PROTOCOL_DRAINING) {
        p->dial_at = now + p->redial_ns;
        p->redial_ns =
            2 * p->redial_ns < PROTOCOL_REDIAL_MAX ? 2 * p->redial_ns : PROTOCOL_REDIAL_MAX;
    }
}

void protocol_give_up(struct protocol *p, const char *why)
{
    if (p->state == PROTOCOL_OPENING) {
        protocol_set_outcome(p, PROTOCOL_UNREACHABLE, 0, false, why);
    } else if (p->state == PROTOCOL_AWAY) {
        protocol_set_outcome(p, PROTOCOL_STATE_LOST, FRAME_RESET_STATE, false, why);
    } else if (p->state != PROTOCOL_LINGER) {
        return;
    }
    protocol_close(p);
}

const char *protocol_why(const struct protocol *p)
{
    return p->why;
}

/* What a RESUME says must fit the stream. */
static int check_attach(const struct protocol *p, const struct hello *h,
                        struct hello_refusal *refusal)
{
    if (p->state == PROTOCOL_CLOSED) {
        hello_refuse(refusal, FRAME_REFUSED_BUSY, "stream is just ending");
        return -FERRY_RETRY;
    }
    if (p->state == PROTOCOL_DRAINING) {
        hello_refuse(refusal, FRAME_REFUSED_ENDED, "%s", p->outcome.text);
        return -FERRY_NOT_FOUND;
    }
    if (!h->resume) {
        hello_refuse(refusal, FRAME_REFUSED_KNOWN, "new stream with an id that is in use");
        return -FERRY_CONFLICT;
    }
    if (h->epoch <= p->epoch) {
        hello_refuse(refusal, FRAME_REFUSED_STALE, "epoch %llu, the last was %llu",
                     (unsigned long long)h->epoch, (unsigned long long)p->epoch);
        return -FERRY_CONFLICT;
    }
    if (h->delivered < p->out.acked || h->delivered > p->out.sent ||
        h->delivered + h->window < p->out.limit) {
        hello_refuse(refusal, FRAME_REFUSED_OFFSET,
                     "delivered %llu and window %u, here %llu to %llu and window end %llu",
                     (unsigned long long)h->delivered, h->window, (unsigned long long)p->out.acked,
                     (unsigned long long)p->out.sent, (unsigned long long)p->out.limit);
        return -FERRY_PEER;
    }
    return 0;
}

int protocol_attach(struct protocol *p, const struct hello *h, int64_t now,
                    struct hello_refusal *ret_refusal)
{
    assert(p->target && memcmp(p->config.id, h->id, FRAME_ID) == 0);
    int rc = check_attach(p, h, ret_refusal);

    if (rc < 0) {
        return rc;
    }
    forget_connection(p);
    p->epoch = h->epoch;
    p->conn = p->confirmed ? PROTOCOL_CONN_UP : PROTOCOL_CONN_HELLO;
    p->conn_at = p->heard_at = now;
    p->resumes++;
    p->ping_due = true;
    window_connected(&p->in.window);
    protocol_out_acked(p, h->delivered, h->window);
    p->out.next = h->delivered;
    if (p->state == PROTOCOL_AWAY) {
        p->state = PROTOCOL_OPEN;
    }
    protocol_check_done(p, now);
    return 0;
}

enum protocol_hangup protocol_hangup(const struct protocol *p)
{
    if (p->conn == PROTOCOL_CONN_NONE) {
        return PROTOCOL_KEEP;
    }
    if (p->drop) {
        return PROTOCOL_DROP;
    }
    return p->state == PROTOCOL_CLOSED ? PROTOCOL_FLUSH : PROTOCOL_KEEP;
}

/* ---- the unix socket ---- */

void protocol_unix_connected(struct protocol *p, int64_t now)
{
    if (!p->target || p->state != PROTOCOL_OPENING) {
        return;
    }
    p->confirmed = true;
    if (p->conn == PROTOCOL_CONN_NONE) {
        p->state = PROTOCOL_AWAY;
        return;
    }
    p->state = PROTOCOL_OPEN;
    p->conn = PROTOCOL_CONN_UP;
    p->heard_at = now;
    p->ping_due = true;
}

void protocol_unix_refused(struct protocol *p, const char *text, int64_t now)
{
    (void)now;
    if (!p->target || p->state != PROTOCOL_OPENING) {
        return;
    }
    protocol_set_outcome(p, PROTOCOL_REFUSED, FRAME_REFUSED_UNIX, false, text);
    p->final = PROTOCOL_FINAL_REFUSED;
    protocol_close(p);
}

size_t protocol_read_space(struct protocol *p, void **ret)
{
    struct protocol_out *out = &p->out;
    uint64_t limit = out->store.begin + out->max;
    uint8_t *where;

    if (!protocol_unix_live(p) || out->eof) {
        return 0;
    }
    if (limit > out->limit) {
        limit = out->limit;
    }
    if (out->store.end >= limit) {
        return 0;
    }
    uint64_t want = limit - out->store.end;
    size_t n = segments_reserve(&out->store, want < FRAME_DATA_MAX ? (size_t)want : FRAME_DATA_MAX,
                                true, &where);

    if (n == 0) {
        p->no_memory = true;
        return 0;
    }
    *ret = where;
    return n;
}

void protocol_unix_read(struct protocol *p, size_t n)
{
    segments_commit(&p->out.store, n);
}

void protocol_unix_eof(struct protocol *p, int64_t now)
{
    if (!protocol_unix_live(p) || p->out.eof) {
        return;
    }
    p->out.eof = true;
    if (p->sink_failed) {
        protocol_break_off(p, FRAME_RESET_UNIX, p->sink_text, now);
    }
}

int protocol_write_vec(const struct protocol *p, struct iovec *vec, int max)
{
    if (p->in.discard || !(protocol_unix_live(p) || p->state == PROTOCOL_DRAINING)) {
        return 0;
    }
    return segments_vec(&p->in.store, vec, max);
}

void protocol_unix_written(struct protocol *p, size_t n, int64_t now)
{
    struct protocol_in *in = &p->in;
    uint64_t every =
        in->window.bytes / 2 < PROTOCOL_ACK_BYTES ? in->window.bytes / 2 : PROTOCOL_ACK_BYTES;

    if (n == 0) {
        return;
    }
    segments_release(&in->store, in->store.begin + n);
    in->written += n;
    window_delivered(&in->window, n, now);
    p->moved_at = now;
    if (protocol_delivered(p) - in->told >= every) {
        in->ack_now = true;
    } else if (!in->ack_now && in->ack_at == PROTOCOL_NEVER) {
        in->ack_at = now + PROTOCOL_ACK_DELAY;
    }
    if (p->conn == PROTOCOL_CONN_UP && !p->ping_out && now - p->ping_at >= FERRY_NS_PER_S) {
        p->ping_due = true;
    }
    protocol_check_drained(p);
}

bool protocol_shutdown_due(const struct protocol *p)
{
    const struct protocol_in *in = &p->in;

    return in->fin && !in->fin_done && in->store.begin == in->store.end && !in->discard &&
           (protocol_unix_live(p) || p->state == PROTOCOL_DRAINING);
}

void protocol_shutdown_done(struct protocol *p, int64_t now)
{
    if (!protocol_shutdown_due(p)) {
        return;
    }
    p->in.fin_done = true;
    p->in.ack_now = true;
    protocol_check_drained(p);
    protocol_check_done(p, now);
}

bool protocol_shutdown_passed(const struct protocol *p)
{
    return p->in.fin_done;
}

void protocol_unix_write_failed(struct protocol *p, const char *text, int64_t now)
{
    if (p->state == PROTOCOL_DRAINING) {
        protocol_close(p);
        return;
    }
    if (!protocol_unix_live(p) || p->sink_failed) {
        return;
    }
    if (p->out.eof) {
        protocol_break_off(p, FRAME_RESET_UNIX, text, now);
        return;
    }
    p->sink_failed = true;
    p->sink_at = now;
    snprintf(p->sink_text, sizeof(p->sink_text), "%s", text);
    p->in.discard = true;
    p->in.ack_now = false;
    p->in.ack_at = PROTOCOL_NEVER;
    segments_release(&p->in.store, p->in.store.end);
}

void protocol_unix_failed(struct protocol *p, const char *text, int64_t now)
{
    if (p->state == PROTOCOL_DRAINING) {
        protocol_close(p);
    } else if (p->state == PROTOCOL_OPENING || protocol_unix_live(p)) {
        protocol_break_off(p, FRAME_RESET_UNIX, text, now);
    }
}

bool protocol_unix_over(const struct protocol *p)
{
    return p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_LINGER ||
           (p->out.eof && p->in.fin_done);
}

void protocol_cancel(struct protocol *p, const char *text, int64_t now)
{
    if (p->state == PROTOCOL_DRAINING) {
        protocol_close(p);
    } else if (p->state == PROTOCOL_OPENING || protocol_unix_live(p)) {
        p->reset_now = true;
        protocol_break_off(p, FRAME_RESET_CANCELLED, text, now);
    }
}

void protocol_part(struct protocol *p, const char *text)
{
    if (p->state != PROTOCOL_LINGER && p->state != PROTOCOL_CLOSED) {
        protocol_set_outcome(p, PROTOCOL_RESET, FRAME_RESET_CANCELLED, false, text);
    }
    p->in.discard = true;
    segments_release(&p->in.store, p->in.store.end);
    protocol_close(p);
}

/* ---- settings, and what is known ---- */

void protocol_set_window_max(struct protocol *p, uint32_t bytes)
{
    struct window *w = &p->in.window;

    /* The store was made for the first maximum. */
    w->max = bytes < p->config.window_max ? bytes : p->config.window_max;
    w->start = p->config.window_start < w->max ? p->config.window_start : w->max;
    w->bytes = w->bytes < w->max ? w->bytes : w->max;
}

void protocol_set_send_max(struct protocol *p, uint32_t bytes)
{
    p->out.max = bytes < p->config.send_max ? bytes : p->config.send_max;
}

void protocol_set_resume_window(struct protocol *p, int64_t window_ns)
{
    p->config.resume_window_ns = window_ns;
}

enum protocol_state protocol_state(const struct protocol *p)
{
    return p->state;
}

const char *protocol_state_name(enum protocol_state state)
{
    return (unsigned)state < PROTOCOL_STATE_COUNT ? state_names[state] : "unknown";
}

bool protocol_belongs(const struct protocol *p, bool target, const char *move, uint32_t channel)
{
    return p->target == target && p->config.channel == channel && strcmp(p->config.move, move) == 0;
}

const uint8_t *protocol_id(const struct protocol *p)
{
    return p->config.id;
}

const struct protocol_outcome *protocol_outcome(const struct protocol *p)
{
    return &p->outcome;
}

const char *protocol_end_name(enum protocol_end end)
{
    return (unsigned)end < PROTOCOL_END_COUNT ? end_names[end] : "unknown";
}

void protocol_tombstone(const struct protocol *p, struct hello_tombstone *ret)
{
    *ret = (struct hello_tombstone){
        .channel = p->config.channel,
        .epoch = p->epoch,
        .finished = p->outcome.end == PROTOCOL_FINISHED,
        .delivered = protocol_delivered(p),
        .sent = protocol_produced(p),
    };
    memcpy(ret->id, p->config.id, FRAME_ID);
    memcpy(ret->move, p->config.move, sizeof(ret->move));
    switch (p->outcome.end) {
    case PROTOCOL_REFUSED:
        ret->refusal.code = (enum frame_refusal)p->outcome.code;
        break;
    case PROTOCOL_EXPIRED:
        ret->refusal.code = FRAME_REFUSED_EXPIRED;
        break;
    default:
        ret->refusal.code = FRAME_REFUSED_ENDED;
        break;
    }
    memcpy(ret->refusal.text, p->outcome.text, sizeof(ret->refusal.text));
}

void protocol_stats(const struct protocol *p, struct protocol_stats *ret)
{
    *ret = (struct protocol_stats){
        .epoch = p->epoch,
        .resumes = p->resumes,
        .read = p->out.store.end,
        .acked = p->out.acked < p->out.store.end ? p->out.acked : p->out.store.end,
        .received = p->in.store.end,
        .written = p->in.written,
        .replayed = p->out.replayed,
        .away_since = p->away_at,
        .rtt_ns = p->in.window.rtt_ns,
        .rate_in = p->in.window.rate,
        .window = p->in.window.bytes,
        .memory = segments_memory(&p->out.store) + segments_memory(&p->in.store),
    };
}

size_t protocol_memory_max(const struct protocol *p)
{
    return sizeof(*p) + segments_memory_max(&p->out.store) + segments_memory_max(&p->in.store);
}
