/* What comes in: a parser that says where the next bytes belong, so that payload is read to the
 * place from which it is delivered, and what each frame does. frame_get() has judged each frame by
 * itself; here it is judged against the stream. */
#include "relay/protocol/protocol_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void protocol_in_reset(struct protocol_in *in)
{
    in->head_len = 0;
    in->in_payload = false;
    in->skip = in->left = 0;
    in->note_len = 0;
    in->ack_now = false;
    in->ack_at = PROTOCOL_NEVER;
}

/* A frame is through, the next header follows. */
static void next_frame(struct protocol_in *in)
{
    in->head_len = 0;
    in->note_len = 0;
    in->in_payload = false;
}

static bool deaf(const struct protocol *p)
{
    return p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_DRAINING || p->drop ||
           p->conn == PROTOCOL_CONN_NONE;
}

static void data_begins(struct protocol *p)
{
    struct protocol_in *in = &p->in;
    uint64_t offset = in->frame.offset, end = offset + in->frame.length;
    uint64_t received = in->store.end;

    in->skip = in->frame.length;
    in->left = 0;
    if (in->discard) {
        return;
    }
    if (offset > received) {
        protocol_violation(p, "DATA at %llu leaves a gap behind %llu", (unsigned long long)offset,
                           (unsigned long long)received);
    } else if (end > in->limit) {
        protocol_violation(p, "DATA up to %llu, the window ends at %llu", (unsigned long long)end,
                           (unsigned long long)in->limit);
    } else if (in->fin && end > received) {
        protocol_violation(p, "DATA up to %llu behind FIN at %llu", (unsigned long long)end,
                           (unsigned long long)received);
    } else if (end > received) {
        in->skip = (size_t)(received - offset);
        in->left = in->frame.length - in->skip;
    }
}

static void take_fin(struct protocol *p)
{
    struct protocol_in *in = &p->in;

    if (in->discard) {
        return;
    }
    if (in->frame.offset != in->store.end) {
        protocol_violation(p, "FIN at %llu, received are %llu",
                           (unsigned long long)in->frame.offset, (unsigned long long)in->store.end);
        return;
    }
    in->fin = true;
}

static void take_pong(struct protocol *p, int64_t now)
{
    if (!p->ping_out || p->in.frame.offset != p->ping_token) {
        protocol_violation(p, "PONG %llu without its PING", (unsigned long long)p->in.frame.offset);
        return;
    }
    p->ping_out = false;
    window_rtt(&p->in.window, now - p->ping_at);
}

/* Everything was delivered in both directions and the target says so. */
static void take_finished(struct protocol *p)
{
    struct protocol_in *in = &p->in;
    bool all = in->fin_done && p->out.eof && in->frame.offset == protocol_produced(p) &&
               in->frame.offset <= p->out.sent;

    if (p->state == PROTOCOL_LINGER && !p->target) {
        protocol_close(p);
    } else if (p->target || !all) {
        protocol_violation(p, "%s says finished at %llu", frame_type_name(in->frame.type),
                           (unsigned long long)in->frame.offset);
    } else {
        protocol_set_outcome(p, PROTOCOL_FINISHED, 0, false, "");
        protocol_close(p);
    }
}

static void take_ack(struct protocol *p, int64_t now)
{
    struct protocol_in *in = &p->in;

    if (in->frame.flags & FRAME_FINISHED) {
        take_finished(p);
        return;
    }
    const char *wrong = protocol_out_acked(p, in->frame.offset, frame_u32(in->note));

    if (wrong) {
        protocol_violation(p, "ACK %s: %llu", wrong, (unsigned long long)in->frame.offset);
        return;
    }
    protocol_check_done(p, now);
}

static void take_hello_ok(struct protocol *p, int64_t now)
{
    struct protocol_in *in = &p->in;

    p->answered = true;
    if (p->confirmed && memcmp(p->config.instance, in->note, FRAME_ID) != 0) {
        if (p->state != PROTOCOL_LINGER) {
            protocol_set_outcome(p, PROTOCOL_STATE_LOST, FRAME_RESET_STATE, true,
                                 "target relay was replaced and lost the stream");
            p->final = PROTOCOL_FINAL_RESET;
        }
        protocol_close(p);
        return;
    }
    if (in->frame.flags & FRAME_FINISHED) {
        take_finished(p);
        return;
    }
    const char *wrong = protocol_out_acked(p, in->frame.offset, frame_u32(in->note + FRAME_ID));

    if (wrong) {
        protocol_violation(p, "HELLO-OK %s: %llu", wrong, (unsigned long long)in->frame.offset);
        return;
    }
    if (p->confirmed) {
        p->resumes++;
    }
    memcpy(p->config.instance, in->note, FRAME_ID);
    p->confirmed = p->resume = true;
    p->conn = PROTOCOL_CONN_UP;
    p->redial_ns = PROTOCOL_REDIAL_MIN;
    p->out.next = in->frame.offset;
    p->ping_due = true;
    window_connected(&in->window);
    if (p->state != PROTOCOL_LINGER) {
        p->state = PROTOCOL_OPEN;
    }
    protocol_check_done(p, now);
}

static void take_refused(struct protocol *p)
{
    char text[FRAME_TEXT_MAX + 1];
    uint16_t code;

    frame_get_note(p->in.note, p->in.frame.length, &code, text);
    p->answered = true;
    p->drop = true;
    snprintf(p->why, sizeof(p->why), "refused (%s): %.90s", frame_refusal_name(code), text);
    if (code == FRAME_REFUSED_BUSY && (p->resume || p->state != PROTOCOL_LINGER)) {
        return;
    }
    if (!p->confirmed && code == FRAME_REFUSED_KNOWN && !p->resume) {
        p->resume = true; /* an earlier HELLO of ours arrived after all */
        return;
    }
    if (p->state == PROTOCOL_OPENING && code == FRAME_REFUSED_UNKNOWN && p->resume) {
        p->resume = false; /* none did, so nothing is lost by starting anew */
        return;
    }
    if (p->state == PROTOCOL_LINGER) {
        protocol_close(p);
        return;
    }
    enum protocol_end end = PROTOCOL_REFUSED;

    if (code == FRAME_REFUSED_EXPIRED) {
        end = PROTOCOL_EXPIRED;
    } else if (p->confirmed && code == FRAME_REFUSED_UNKNOWN) {
        end = PROTOCOL_STATE_LOST;
    }
    protocol_set_outcome(p, end, code, true, text);
    protocol_close(p);
}

static void take_reset(struct protocol *p, int64_t now)
{
    char text[FRAME_TEXT_MAX + 1];
    bool echo = p->in.frame.flags & FRAME_ECHO;
    uint16_t code;

    frame_get_note(p->in.note, p->in.frame.length, &code, text);
    if (p->state == PROTOCOL_LINGER) {
        if (!echo && !p->reset_sent) {
            p->final = PROTOCOL_FINAL_ECHO;
        }
        protocol_close(p);
        return;
    }
    if (echo) {
        protocol_violation(p, "RESET answers none");
        return;
    }
    protocol_set_outcome(p, PROTOCOL_RESET, code, true, text);
    p->final = PROTOCOL_FINAL_ECHO;
    p->state = PROTOCOL_DRAINING;
    p->over_at = now;
    p->dial_at = PROTOCOL_NEVER;
    protocol_check_drained(p);
}

/* Types that may come in the present state of the connection. */
static bool in_order(const struct protocol *p, enum frame_type type)
{
    bool answer = type == FRAME_HELLO_OK || type == FRAME_REFUSED;

    if (p->conn == PROTOCOL_CONN_HELLO) {
        return !p->target && p->hello_sent && answer;
    }
    return (!p->target || p->hello_sent) && !answer && type != FRAME_HELLO;
}

static void take_frame(struct protocol *p, int64_t now)
{
    struct protocol_in *in = &p->in;

    switch (in->frame.type) {
    case FRAME_HELLO_OK:
        take_hello_ok(p, now);
        break;
    case FRAME_REFUSED:
        take_refused(p);
        break;
    case FRAME_ACK:
        take_ack(p, now);
        break;
    case FRAME_FIN:
        take_fin(p);
        break;
    case FRAME_PING:
        p->pong_due = true;
        p->pong_token = in->frame.offset;
        break;
    case FRAME_PONG:
        take_pong(p, now);
        break;
    case FRAME_RESET:
        take_reset(p, now);
        break;
    case FRAME_DATA:
    case FRAME_HELLO:
    case FRAME_TYPE_COUNT:
        break;
    }
    next_frame(in);
}

static void take_header(struct protocol *p, int64_t now)
{
    struct protocol_in *in = &p->in;
    struct ferry_error err;

    if (frame_get(in->head, &in->frame, &err) < 0) {
        protocol_violation(p, "%.200s", err.msg);
        return;
    }
    if (!in_order(p, in->frame.type)) {
        protocol_violation(p, "%s out of order", frame_type_name(in->frame.type));
        return;
    }
    if (in->frame.type == FRAME_DATA) {
        data_begins(p);
    }
    if (in->frame.length == 0) {
        take_frame(p, now);
    } else {
        in->in_payload = true;
    }
}

size_t protocol_recv_space(struct protocol *p, void **ret)
{
    struct protocol_in *in = &p->in;

    if (!deaf(p) && in->left > 0 && in->discard) {
        in->skip += in->left;
        in->left = 0;
    }
    if (!deaf(p) && in->in_payload && in->frame.type == FRAME_DATA && in->skip == 0) {
        bool first = in->left == in->frame.length;
        uint8_t *where;
        size_t n = segments_reserve(&in->store, in->left, first && in->left >= PROTOCOL_ALIGN_FROM,
                                    &where);

        if (n > 0) {
            *ret = where;
            return n;
        }
        p->final = PROTOCOL_FINAL_RESET;
        protocol_set_outcome(p, PROTOCOL_RESET, FRAME_RESET_RESOURCES, false,
                             "no memory for received bytes");
        protocol_close(p);
    }
    if (deaf(p)) {
        *ret = in->scratch;
        return sizeof(in->scratch);
    }
    if (!in->in_payload) {
        *ret = in->head + in->head_len;
        return FRAME_HEADER - in->head_len;
    }
    if (in->frame.type == FRAME_DATA) {
        *ret = in->scratch;
        return in->skip < sizeof(in->scratch) ? in->skip : sizeof(in->scratch);
    }
    *ret = in->note + in->note_len;
    return in->frame.length - in->note_len;
}

void protocol_received(struct protocol *p, size_t n, int64_t now)
{
    struct protocol_in *in = &p->in;

    if (n == 0 || deaf(p)) {
        return;
    }
    p->heard_at = now;
    if (!in->in_payload) {
        in->head_len += n;
        assert(in->head_len <= FRAME_HEADER);
        if (in->head_len == FRAME_HEADER) {
            take_header(p, now);
        }
        return;
    }
    if (in->frame.type != FRAME_DATA) {
        in->note_len += n;
        assert(in->note_len <= in->frame.length);
        if (in->note_len == in->frame.length) {
            take_frame(p, now);
        }
        return;
    }
    if (in->skip > 0) {
        assert(n <= in->skip);
        in->skip -= n;
        if (!in->discard && !in->ack_now && in->ack_at == PROTOCOL_NEVER) {
            in->ack_at = now + PROTOCOL_ACK_DELAY;
        }
    } else {
        assert(n <= in->left);
        segments_commit(&in->store, n);
        in->left -= n;
        p->moved_at = now;
    }
    if (in->skip == 0 && in->left == 0) {
        next_frame(in);
    }
}
