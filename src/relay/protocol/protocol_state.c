/* One end of a stream as bytes, for the process that takes it over.
 *
 * What is written is the stream as it is once its connection is gone: a connection cannot be handed
 * over, and the rules for a lost one already say what must be kept. So whatever a frame under way
 * had not achieved is left out, an OPEN stream is AWAY, and a HELLO that was not answered may have
 * arrived.
 *
 * What is read is judged as if a peer had sent it: another version, numbers that contradict each
 * other or sizes beyond the limits are refused, and nothing is built from them. */
#include "relay/protocol/protocol_priv.h"

#include <string.h>

#include "base/error.h"
#include "relay/protocol/pack.h"

enum { PAGE = 4096, BLOCK_MAX = 1 << 20 };
static const char mark[4] = {'f', '/', '1', 's'};

/* ---- writing ---- */

static void put_store(struct pack *k, const struct segments *s, uint64_t begin)
{
    const uint8_t *bytes;
    size_t n;

    pack_u64(k, begin);
    pack_u64(k, s->end);
    for (uint64_t at = begin; (n = segments_peek(s, at, &bytes)) > 0; at += n) {
        pack_bytes(k, bytes, n);
    }
}

static void put_config(struct pack *k, const struct protocol_config *c)
{
    pack_bytes(k, c->id, sizeof(c->id));
    pack_text(k, c->move);
    pack_u32(k, c->channel);
    pack_bytes(k, c->instance, sizeof(c->instance));
    pack_i64(k, c->resume_window_ns);
    pack_i64(k, c->open_timeout_ns);
    pack_u32(k, c->window_start);
    pack_u32(k, c->window_max);
    pack_u32(k, c->send_max);
    pack_u32(k, c->block_size);
}

static void put_life(struct pack *k, const struct protocol *p, int64_t now)
{
    bool unanswered = !p->target && !p->confirmed && p->hello_sent && !p->answered;

    pack_u8(k, (uint8_t)(p->state == PROTOCOL_OPEN ? PROTOCOL_AWAY : p->state));
    pack_u8(k, (uint8_t)p->outcome.end);
    pack_u32(k, p->outcome.code);
    pack_bool(k, p->outcome.by_peer);
    pack_text(k, p->outcome.text);
    pack_bool(k, p->confirmed);
    pack_bool(k, p->resume || unanswered);
    pack_u64(k, p->epoch);
    pack_u64(k, p->resumes);
    pack_i64(k, p->born_at);
    pack_i64(k, p->state == PROTOCOL_OPEN ? now : p->away_at);
    pack_i64(k, p->over_at);
    pack_text(k, p->why);
    pack_bool(k, p->reset_now);
    pack_bool(k, p->no_memory);
    pack_bool(k, p->sink_failed);
    pack_i64(k, p->sink_at);
    pack_text(k, p->sink_text);
}

void protocol_export(const struct protocol *p, int64_t now, struct pack *k)
{
    const struct protocol_out *out = &p->out;
    const struct protocol_in *in = &p->in;

    pack_bytes(k, mark, sizeof(mark));
    pack_u32(k, PROTOCOL_STATE_VERSION);
    pack_bool(k, p->target);
    put_config(k, &p->config);
    put_life(k, p, now);
    /* Bytes that only a frame under way still needed are not kept. */
    put_store(k, &out->store, out->acked < out->store.end ? out->acked : out->store.end);
    pack_bool(k, out->eof);
    pack_u64(k, out->acked);
    pack_u64(k, out->sent);
    pack_u64(k, out->limit);
    pack_u64(k, out->replayed);
    put_store(k, &in->store, in->store.begin);
    pack_u64(k, in->written);
    pack_bool(k, in->fin);
    pack_bool(k, in->fin_done);
    pack_bool(k, in->discard);
    pack_u64(k, in->told);
    pack_u64(k, in->limit);
    pack_u32(k, in->window.bytes);
}

/* ---- reading ---- */

static void check(struct unpack *u, bool good, const char *what)
{
    if (!good) {
        unpack_fail(u, what);
    }
}

static uint64_t get_number(struct unpack *u)
{
    uint64_t v = unpack_u64(u);

    check(u, v < FRAME_NUMBER_MAX, "a number beyond the limit");
    return v;
}

/* A time that has been. */
static int64_t get_past(struct unpack *u, int64_t now)
{
    int64_t at = unpack_i64(u);

    check(u, at >= 0 && at <= now, "a time that has not come yet");
    return at;
}

static void get_id(struct unpack *u, uint8_t id[FRAME_ID])
{
    const uint8_t *p = unpack_bytes(u, FRAME_ID);

    if (p) {
        memcpy(id, p, FRAME_ID);
    }
}

static bool size_good(uint32_t v)
{
    return v > 0 && v <= FRAME_WINDOW_MAX;
}

static void get_config(struct unpack *u, struct protocol_config *c)
{
    static const uint8_t zero[FRAME_ID];

    get_id(u, c->id);
    unpack_text_into(u, c->move, sizeof(c->move));
    c->channel = unpack_u32(u);
    get_id(u, c->instance);
    c->resume_window_ns = unpack_i64(u);
    c->open_timeout_ns = unpack_i64(u);
    c->window_start = unpack_u32(u);
    c->window_max = unpack_u32(u);
    c->send_max = unpack_u32(u);
    c->block_size = unpack_u32(u);
    check(u, memcmp(c->id, zero, FRAME_ID) != 0, "no stream id");
    check(u, hello_move_good(c->move), "a move uid that cannot be");
    check(u, c->resume_window_ns >= 0, "a resume window that cannot be");
    check(u, c->open_timeout_ns > 0, "a time to open that cannot be");
    check(u, size_good(c->window_start) && size_good(c->window_max) && size_good(c->send_max),
          "a window beyond the limits");
    check(u, c->block_size >= PAGE && c->block_size <= BLOCK_MAX && c->block_size % PAGE == 0,
          "a block size that cannot be");
}

static void get_life(struct unpack *u, struct protocol *p, int64_t now)
{
    p->state = (enum protocol_state)unpack_u8(u);
    p->outcome.end = (enum protocol_end)unpack_u8(u);
    p->outcome.code = unpack_u32(u);
    p->outcome.by_peer = unpack_bool(u);
    unpack_text_into(u, p->outcome.text, sizeof(p->outcome.text));
    p->confirmed = unpack_bool(u);
    p->resume = unpack_bool(u);
    p->epoch = get_number(u);
    p->resumes = get_number(u);
    p->born_at = get_past(u, now);
    p->away_at = get_past(u, now);
    p->over_at = get_past(u, now);
    unpack_text_into(u, p->why, sizeof(p->why));
    p->reset_now = unpack_bool(u);
    p->no_memory = unpack_bool(u);
    p->sink_failed = unpack_bool(u);
    p->sink_at = get_past(u, now);
    unpack_text_into(u, p->sink_text, sizeof(p->sink_text));
    bool opening = p->state == PROTOCOL_OPENING;

    check(u,
          opening || p->state == PROTOCOL_AWAY || p->state == PROTOCOL_DRAINING ||
              p->state == PROTOCOL_LINGER,
          "a state that nobody hands over");
    check(u, p->outcome.end < PROTOCOL_END_COUNT && p->outcome.code <= UINT16_MAX,
          "an outcome that cannot be");
    check(u, !(opening && (p->target || p->confirmed)), "a stream that opens and is open");
    check(u, p->confirmed || !(p->target || p->state == PROTOCOL_AWAY), "a stream never confirmed");
    check(u, p->epoch > 0 || (!p->target && !p->confirmed && !p->resume), "no epoch");
}

/* The bytes of a direction into `s`, which is empty. */
static void get_store(struct unpack *u, struct segments *s)
{
    uint64_t begin = get_number(u), end = get_number(u);

    check(u, begin <= end && end - begin <= s->max, "bytes beyond the window");
    const uint8_t *from = unpack_bytes(u, u->bad ? 0 : (size_t)(end - begin));
    if (!from) {
        return;
    }
    segments_begin_at(s, begin);
    while (s->end < end) {
        uint8_t *to;
        size_t left = (size_t)(end - s->end);
        size_t n = segments_reserve(s, left < FRAME_DATA_MAX ? left : FRAME_DATA_MAX, true, &to);

        if (n == 0) {
            unpack_fail(u, "no memory for its bytes");
            return;
        }
        memcpy(to, from, n);
        from += n;
        segments_commit(s, n);
    }
}

static void get_out(struct unpack *u, struct protocol *p)
{
    struct protocol_out *out = &p->out;

    get_store(u, &out->store);
    out->eof = unpack_bool(u);
    out->acked = out->next = get_number(u);
    out->sent = get_number(u);
    out->limit = get_number(u);
    out->replayed = get_number(u);
    uint64_t first = out->acked < out->store.end ? out->acked : out->store.end;

    check(u, out->acked <= out->sent && out->sent <= protocol_produced(p),
          "acknowledged, sent and read do not fit");
    check(u, out->store.begin == first, "bytes to send that are not those to be kept");
    check(u, out->store.end <= out->limit && out->limit <= out->acked + FRAME_WINDOW_MAX,
          "a window of the peer that cannot be");
}

static void get_in(struct unpack *u, struct protocol *p)
{
    struct protocol_in *in = &p->in;

    get_store(u, &in->store);
    in->written = get_number(u);
    in->fin = unpack_bool(u);
    in->fin_done = unpack_bool(u);
    in->discard = unpack_bool(u);
    in->told = get_number(u);
    in->limit = get_number(u);
    in->window.bytes = unpack_u32(u);
    bool empty = in->store.begin == in->store.end;

    check(u, in->discard ? in->written <= in->store.end && empty : in->written == in->store.begin,
          "bytes to deliver that are not those received");
    check(u, !in->fin_done || (in->fin && empty), "an end that was passed on too early");
    check(u, in->told <= protocol_delivered(p) && in->store.end <= in->limit,
          "more received than was allowed");
    check(u, in->limit <= protocol_delivered(p) + FRAME_WINDOW_MAX, "a window beyond the limits");
    check(u, in->window.bytes <= p->config.window_max, "a window above its maximum");
}

int protocol_import(struct unpack *u, int64_t now, struct protocol **ret, struct ferry_error *err)
{
    struct protocol_config config = {0};
    const uint8_t *head = unpack_bytes(u, sizeof(mark));

    if (!head || memcmp(head, mark, sizeof(mark)) != 0) {
        return ferry_fail(err, FERRY_PEER, "not the state of a stream");
    }
    uint32_t version = unpack_u32(u);
    if (version != PROTOCOL_STATE_VERSION) {
        return ferry_fail(err, FERRY_PEER, "stream state of version %u, this relay knows %d",
                          version, PROTOCOL_STATE_VERSION);
    }
    bool target = unpack_bool(u);
    get_config(u, &config);
    if (u->bad) {
        return ferry_fail(err, FERRY_PEER, "stream state: %s", u->bad);
    }
    ferry_cleanup(protocol_freep) struct protocol *p = protocol_make(&config, now);
    p->target = target;
    get_life(u, p, now);
    get_out(u, p);
    get_in(u, p);
    if (u->bad) {
        return ferry_fail(err, FERRY_PEER, "stream state: %s", u->bad);
    }
    if (!target && p->state != PROTOCOL_DRAINING) {
        p->dial_at = now;
    }
    *ret = ferry_take_ptr(p);
    return 0;
}
