/* What ends by itself: each state and each connection has at most one time at which it is given up,
 * and protocol_deadline() is the soonest of them. */
#include "relay/protocol/protocol_priv.h"

#include <stdio.h>

/* `at` + `span` that stays at PROTOCOL_NEVER. */
static int64_t later(int64_t at, int64_t span)
{
    return span >= PROTOCOL_NEVER - at ? PROTOCOL_NEVER : at + span;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How long the stream waits for a connection: the dialling side decides, so the other waits
 * longer. */
static int64_t patience(const struct protocol *p)
{
    return later(p->config.resume_window_ns, p->target ? PROTOCOL_GRACE : 0);
}

/* When the present state ends by itself. */
static int64_t state_ends_at(const struct protocol *p)
{
    switch (p->state) {
    case PROTOCOL_OPENING:
        return p->target ? PROTOCOL_NEVER : later(p->born_at, p->config.open_timeout_ns);
    case PROTOCOL_OPEN:
        return p->sink_failed ? later(p->sink_at, PROTOCOL_DRAIN) : PROTOCOL_NEVER;
    case PROTOCOL_AWAY:
        return later(p->away_at, patience(p));
    case PROTOCOL_DRAINING:
        return later(p->over_at, PROTOCOL_DRAIN);
    case PROTOCOL_LINGER:
        return later(p->over_at, patience(p));
    case PROTOCOL_CLOSED:
    case PROTOCOL_STATE_COUNT:
        break;
    }
    return PROTOCOL_NEVER;
}

static void state_ends(struct protocol *p, int64_t now)
{
    char text[FRAME_TEXT_MAX + 1];

    switch (p->state) {
    case PROTOCOL_OPENING:
        snprintf(text, sizeof(text), "not opened in time: %s",
                 p->why[0] ? p->why : "target does not answer");
        protocol_set_outcome(p, PROTOCOL_UNREACHABLE, 0, false, text);
        protocol_close(p);
        break;
    case PROTOCOL_OPEN:
        protocol_break_off(p, FRAME_RESET_UNIX, p->sink_text, now);
        break;
    case PROTOCOL_AWAY:
        snprintf(text, sizeof(text), "connection away for %lld s: %s",
                 (long long)((now - p->away_at) / FERRY_NS_PER_S),
                 p->why[0] ? p->why : "peer does not answer");
        protocol_set_outcome(p, PROTOCOL_EXPIRED, 0, false, text);
        protocol_close(p);
        break;
    case PROTOCOL_DRAINING:
    case PROTOCOL_LINGER:
        protocol_close(p);
        break;
    case PROTOCOL_CLOSED:
    case PROTOCOL_STATE_COUNT:
        break;
    }
}

/* When the connection is to be given up for its silence. */
static int64_t connection_dies_at(const struct protocol *p)
{
    if (p->drop || p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_DRAINING) {
        return PROTOCOL_NEVER;
    }
    if (p->conn == PROTOCOL_CONN_UP) {
        return p->heard_at + PROTOCOL_DEAD;
    }
    return p->conn == PROTOCOL_CONN_HELLO && !p->target ? p->conn_at + PROTOCOL_ANSWER
                                                        : PROTOCOL_NEVER;
}

static int64_t ping_at(const struct protocol *p)
{
    bool idle = p->conn == PROTOCOL_CONN_UP && !p->ping_out && !p->ping_due && !p->drop &&
                p->state != PROTOCOL_CLOSED && p->state != PROTOCOL_DRAINING;

    return idle ? p->heard_at + PROTOCOL_PING : PROTOCOL_NEVER;
}

void protocol_tick(struct protocol *p, int64_t now)
{
    if (p->no_memory && protocol_unix_live(p)) {
        protocol_break_off(p, FRAME_RESET_RESOURCES, "no memory for bytes to send", now);
    }
    if (now >= state_ends_at(p)) {
        state_ends(p, now);
    }
    if (now >= connection_dies_at(p)) {
        p->drop = true;
        snprintf(p->why, sizeof(p->why), "%s",
                 p->conn == PROTOCOL_CONN_UP ? "no sign of life for 8 s" : "HELLO not answered");
    }
    if (now >= p->in.ack_at) {
        p->in.ack_now = true;
        p->in.ack_at = PROTOCOL_NEVER;
    }
    if (now >= ping_at(p)) {
        p->ping_due = true;
    }
    if (now - p->moved_at >= PROTOCOL_PING) {
        p->moved_at = now;
        segments_trim(&p->out.store);
        segments_trim(&p->in.store);
    }
}

int64_t protocol_deadline(const struct protocol *p)
{
    int64_t at = sooner(state_ends_at(p), connection_dies_at(p));

    if (p->conn == PROTOCOL_CONN_UP && p->state != PROTOCOL_CLOSED) {
        at = sooner(at, p->in.ack_at);
    }
    at = sooner(at, ping_at(p));
    return sooner(at, protocol_dial_at(p));
}
