/* What goes out: frames are made from the state when the shell asks for them, one batch of small
 * frames with at most one large payload at a time. So there is no queue that could grow: a PING
 * answered late is answered once, an ACK says what is true when it leaves. */
#include "relay/protocol/protocol_priv.h"

#include <assert.h>
#include <string.h>

void protocol_out_release(struct protocol *p)
{
    struct protocol_out *out = &p->out;
    uint64_t below = out->acked;

    /* An ACK may overtake a replay; the payload under way stays where it is. */
    if (out->payload && out->payload_offset < below) {
        below = out->payload_offset;
    }
    segments_release(&out->store, below);
}

void protocol_out_reset(struct protocol *p)
{
    p->out.len = p->out.pos = 0;
    p->out.payload = NULL;
    p->out.payload_len = 0;
    protocol_out_release(p);
}

const char *protocol_out_acked(struct protocol *p, uint64_t delivered, uint32_t window)
{
    struct protocol_out *out = &p->out;

    if (delivered < out->acked) {
        return "takes back what was acknowledged";
    }
    if (delivered > out->sent) {
        return "acknowledges what was never sent";
    }
    if (window > FRAME_WINDOW_MAX) {
        return "window above the limit";
    }
    if (delivered + window < out->limit) {
        return "takes back a window";
    }
    out->acked = delivered;
    out->limit = delivered + window;
    if (out->next < delivered) {
        out->next = delivered;
    }
    protocol_out_release(p);
    return NULL;
}

/* The window to announce now. A limit once granted is never taken back. */
uint32_t protocol_in_grant(struct protocol *p)
{
    struct protocol_in *in = &p->in;
    uint64_t delivered = protocol_delivered(p);

    if (!in->discard && delivered + in->window.bytes > in->limit) {
        in->limit = delivered + in->window.bytes;
    }
    in->told = delivered;
    in->ack_now = false;
    in->ack_at = PROTOCOL_NEVER;
    return in->limit > delivered ? (uint32_t)(in->limit - delivered) : 0;
}

static uint8_t *end_of(struct protocol *p)
{
    return p->out.buf + p->out.len;
}

static void put_hello(struct protocol *p)
{
    struct hello h = {
        .resume = p->resume,
        .epoch = p->epoch,
        .channel = p->config.channel,
        .window = protocol_in_grant(p),
        .delivered = protocol_delivered(p),
    };

    memcpy(h.id, p->config.id, FRAME_ID);
    memcpy(h.move, p->config.move, sizeof(h.move));
    p->out.len += hello_put(end_of(p), &h);
    p->hello_sent = true;
}

static void put_hello_ok(struct protocol *p, uint8_t flags)
{
    uint32_t window = protocol_in_grant(p);

    p->out.len +=
        frame_put_hello_ok(end_of(p), flags, protocol_delivered(p), p->config.instance, window);
    p->hello_sent = true;
}

static void put_ack(struct protocol *p, uint8_t flags)
{
    uint32_t window = protocol_in_grant(p);

    p->out.len += frame_put_ack(end_of(p), flags, protocol_delivered(p), window);
}

static void put_final(struct protocol *p)
{
    enum protocol_final final = p->final;

    p->final = PROTOCOL_FINAL_NONE;
    switch (final) {
    case PROTOCOL_FINAL_NONE:
        break;
    case PROTOCOL_FINAL_RESET:
    case PROTOCOL_FINAL_ECHO:
        p->out.len +=
            frame_put_note(end_of(p), FRAME_RESET, final == PROTOCOL_FINAL_ECHO ? FRAME_ECHO : 0,
                           (uint16_t)p->outcome.code, p->outcome.text);
        break;
    case PROTOCOL_FINAL_REFUSED: {
        struct hello_tombstone t;

        protocol_tombstone(p, &t);
        p->out.len += hello_put_refused(end_of(p), &t.refusal);
        break;
    }
    case PROTOCOL_FINAL_HELLO_OK:
        put_hello_ok(p, FRAME_FINISHED);
        break;
    case PROTOCOL_FINAL_ACK:
        put_ack(p, FRAME_FINISHED);
        break;
    }
}

/* The next bytes of the store as a DATA frame. Returns false when the buffer takes no more. */
static bool put_data(struct protocol *p)
{
    struct protocol_out *out = &p->out;
    const uint8_t *bytes = NULL;
    size_t n = segments_peek(&out->store, out->next, &bytes);

    assert(n > 0);
    if (n > FRAME_DATA_MAX) {
        n = FRAME_DATA_MAX;
    }
    bool copy = n < PROTOCOL_INLINE;

    if (out->len + FRAME_HEADER + (copy ? n : 0) > sizeof(out->buf)) {
        return false;
    }
    out->len += frame_put(end_of(p), FRAME_DATA, 0, (uint32_t)n, out->next);
    if (copy) {
        memcpy(end_of(p), bytes, n);
        out->len += n;
    } else {
        out->payload = bytes;
        out->payload_len = n;
        out->payload_offset = out->next;
    }
    if (out->next < out->sent) {
        uint64_t again = out->sent - out->next;

        out->replayed += again < n ? again : n;
    }
    out->next += n;
    if (out->sent < out->next) {
        out->sent = out->next;
    }
    return copy;
}

/* Bytes, then FIN, then a RESET that follows them. All bytes in the store are inside the peer's
 * window: no more are read. */
static void put_stream(struct protocol *p)
{
    struct protocol_out *out = &p->out;
    bool reset = p->state == PROTOCOL_LINGER && p->outcome.end == PROTOCOL_RESET;

    if (!(reset && p->reset_now)) {
        while (out->next < out->store.end && put_data(p)) {
        }
        if (out->next < out->store.end || out->payload ||
            out->len + 2 * FRAME_HEADER + FRAME_NOTE_MAX > sizeof(out->buf)) {
            return;
        }
        if (out->eof && out->next == out->store.end) {
            out->len += frame_put(end_of(p), FRAME_FIN, 0, 0, out->next);
            out->next++;
            if (out->sent < out->next) {
                out->sent = out->next;
            }
        }
    }
    if (reset && !p->reset_sent) {
        out->len +=
            frame_put_note(end_of(p), FRAME_RESET, 0, (uint16_t)p->outcome.code, p->outcome.text);
        p->reset_sent = true;
    }
}

static void build(struct protocol *p, int64_t now)
{
    struct protocol_out *out = &p->out;

    if (p->state == PROTOCOL_CLOSED || p->state == PROTOCOL_DRAINING) {
        put_final(p);
        return;
    }
    if (p->conn == PROTOCOL_CONN_HELLO) {
        if (!p->target && !p->hello_sent) {
            put_hello(p);
        }
        return;
    }
    if (p->reset_sent) {
        return;
    }
    if (p->target && !p->hello_sent) {
        put_hello_ok(p, 0);
    }
    if (p->pong_due) {
        p->pong_due = false;
        out->len += frame_put(end_of(p), FRAME_PONG, 0, 0, p->pong_token);
    }
    if (p->ping_due && !p->ping_out) {
        p->ping_due = false;
        p->ping_out = true;
        p->ping_token++;
        p->ping_at = now;
        out->len += frame_put(end_of(p), FRAME_PING, 0, 0, p->ping_token);
    }
    /* An ACK that would be due soon travels with whatever leaves now. */
    bool news = p->in.told != protocol_delivered(p);
    bool company = out->len > 0 || out->next < protocol_produced(p);

    if (!p->in.discard && (p->in.ack_now || (news && company))) {
        put_ack(p, 0);
    }
    if (out->next < out->store.end) {
        p->moved_at = now;
    }
    put_stream(p);
}

int protocol_output(struct protocol *p, int64_t now, struct iovec parts[2])
{
    struct protocol_out *out = &p->out;
    int n = 0;

    if (p->conn == PROTOCOL_CONN_NONE || p->drop) {
        return 0;
    }
    if (out->len == 0 && !out->payload) {
        build(p, now);
    }
    if (out->pos < out->len) {
        parts[n++] =
            (struct iovec){.iov_base = out->buf + out->pos, .iov_len = out->len - out->pos};
    }
    if (out->payload) {
        parts[n++] = (struct iovec){.iov_base = (void *)out->payload, .iov_len = out->payload_len};
    }
    return n;
}

void protocol_sent(struct protocol *p, size_t n)
{
    struct protocol_out *out = &p->out;
    size_t head = out->len - out->pos < n ? out->len - out->pos : n;

    out->pos += head;
    n -= head;
    assert(n <= out->payload_len);
    if (out->payload) {
        out->payload += n;
        out->payload_len -= n;
        out->payload_offset += n;
    }
    if (out->pos == out->len && out->payload_len == 0) {
        protocol_out_reset(p);
    }
}
