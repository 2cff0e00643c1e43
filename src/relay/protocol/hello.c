#include "relay/protocol/hello.h"

#include <stdio.h>
#include <string.h>

/* Payload: version 2, length of the move uid 2, channel 4, epoch 8, stream id 16, window 4, move
 * uid. Only the version has a fixed place for ever. */
enum {
    AT_VERSION = 0,
    AT_MOVE_LENGTH = 2,
    AT_CHANNEL = 4,
    AT_EPOCH = 8,
    AT_ID = 16,
    AT_WINDOW = 32
};

void hello_refuse(struct hello_refusal *refusal, enum frame_refusal code, const char *fmt, ...)
{
    va_list ap;

    refusal->code = code;
    va_start(ap, fmt);
    vsnprintf(refusal->text, sizeof(refusal->text), fmt, ap);
    va_end(ap);
}

size_t hello_put(uint8_t *buf, const struct hello *h)
{
    size_t move = strnlen(h->move, FRAME_MOVE_MAX);
    uint8_t *p = buf + FRAME_HEADER;

    frame_put(buf, FRAME_HELLO, h->resume ? FRAME_RESUME : FRAME_NEW,
              (uint32_t)(FRAME_HELLO_FIXED + move), h->delivered);
    frame_set_u16(p + AT_VERSION, FRAME_VERSION);
    frame_set_u16(p + AT_MOVE_LENGTH, (uint16_t)move);
    frame_set_u32(p + AT_CHANNEL, h->channel);
    frame_set_u64(p + AT_EPOCH, h->epoch);
    memcpy(p + AT_ID, h->id, FRAME_ID);
    frame_set_u32(p + AT_WINDOW, h->window);
    memcpy(p + FRAME_HELLO_FIXED, h->move, move);
    return FRAME_HEADER + FRAME_HELLO_FIXED + move;
}

/* A HELLO of another version must be refused as such, so its length may be anything. */
static bool other_version(const uint8_t *buf, size_t have)
{
    return buf[0] == FRAME_HELLO && frame_u32(buf + 4) >= 2 &&
           (have < FRAME_HEADER + 2 || frame_u16(buf + FRAME_HEADER) != FRAME_VERSION);
}

size_t hello_need(const uint8_t *buf, size_t have)
{
    struct frame f;

    if (have < FRAME_HEADER) {
        return FRAME_HEADER - have;
    }
    if (have < FRAME_HEADER + 2 && other_version(buf, have)) {
        return FRAME_HEADER + 2 - have;
    }
    if (other_version(buf, have) || frame_get(buf, &f, NULL) < 0 || f.type != FRAME_HELLO) {
        return 0;
    }
    return have < FRAME_HEADER + f.length ? FRAME_HEADER + f.length - have : 0;
}

static bool move_is_good(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool good = (p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'z') ||
                    (p[i] >= 'A' && p[i] <= 'Z') || p[i] == '-' || p[i] == '.' || p[i] == '_';

        if (!good) {
            return false;
        }
    }
    return true;
}

bool hello_move_good(const char *move)
{
    size_t n = strlen(move);

    return n > 0 && n <= FRAME_MOVE_MAX && move_is_good((const uint8_t *)move, n);
}

/* The first field of the payload that is wrong, or NULL. */
static const char *bad_field(const struct frame *f, const uint8_t *p)
{
    static const uint8_t zero[FRAME_ID];
    size_t move = frame_u16(p + AT_MOVE_LENGTH);
    uint64_t epoch = frame_u64(p + AT_EPOCH);

    if (FRAME_HELLO_FIXED + move != f->length || !move_is_good(p + FRAME_HELLO_FIXED, move)) {
        return "move uid";
    }
    if (epoch == 0 || epoch >= FRAME_NUMBER_MAX) {
        return "epoch";
    }
    if (memcmp(p + AT_ID, zero, FRAME_ID) == 0) {
        return "stream id";
    }
    if (frame_u32(p + AT_WINDOW) > FRAME_WINDOW_MAX) {
        return "window";
    }
    if (f->flags == FRAME_NEW && f->offset != 0) {
        return "delivered offset of a new stream";
    }
    return NULL;
}

int hello_get(const uint8_t *buf, size_t have, struct hello *ret, struct hello_refusal *ret_refusal)
{
    const uint8_t *p = buf + FRAME_HEADER;
    struct ferry_error err;
    struct frame f;

    if (have >= FRAME_HEADER + 2 && other_version(buf, have)) {
        hello_refuse(ret_refusal, FRAME_REFUSED_VERSION, "version %u, this relay speaks %u",
                     frame_u16(p), FRAME_VERSION);
        return -FERRY_PEER;
    }
    if (frame_get(buf, &f, &err) < 0) {
        hello_refuse(ret_refusal, FRAME_REFUSED_MALFORMED, "%.200s", err.msg);
        return -FERRY_PEER;
    }
    if (f.type != FRAME_HELLO) {
        hello_refuse(ret_refusal, FRAME_REFUSED_MALFORMED, "first frame is %s, not HELLO",
                     frame_type_name(f.type));
        return -FERRY_PEER;
    }
    const char *bad = bad_field(&f, p);

    if (bad) {
        hello_refuse(ret_refusal, FRAME_REFUSED_MALFORMED, "HELLO with a wrong %s", bad);
        return -FERRY_PEER;
    }
    *ret = (struct hello){
        .resume = f.flags == FRAME_RESUME,
        .epoch = frame_u64(p + AT_EPOCH),
        .channel = frame_u32(p + AT_CHANNEL),
        .delivered = f.offset,
        .window = frame_u32(p + AT_WINDOW),
    };
    memcpy(ret->id, p + AT_ID, FRAME_ID);
    memcpy(ret->move, p + FRAME_HELLO_FIXED, f.length - FRAME_HELLO_FIXED);
    return 0;
}

static enum hello_verdict decide_live(const struct hello *h, const struct hello_facts *facts,
                                      struct hello_refusal *refusal)
{
    if (!facts->live_same_peer || strcmp(facts->live_move, h->move) != 0 ||
        facts->live_channel != h->channel) {
        hello_refuse(refusal, FRAME_REFUSED_DENIED, "stream belongs to another move or channel");
        return HELLO_REFUSE;
    }
    if (!h->resume) {
        hello_refuse(refusal, FRAME_REFUSED_KNOWN, "new stream with an id that is in use");
        return HELLO_REFUSE;
    }
    if (h->epoch <= facts->live_epoch) {
        hello_refuse(refusal, FRAME_REFUSED_STALE, "epoch %llu, the last was %llu",
                     (unsigned long long)h->epoch, (unsigned long long)facts->live_epoch);
        return HELLO_REFUSE;
    }
    return HELLO_ATTACH;
}

static enum hello_verdict decide_gone(const struct hello *h, const struct hello_tombstone *t,
                                      struct hello_refusal *refusal)
{
    if (strcmp(t->move, h->move) != 0 || t->channel != h->channel) {
        hello_refuse(refusal, FRAME_REFUSED_DENIED, "stream belongs to another move or channel");
        return HELLO_REFUSE;
    }
    if (!h->resume) {
        hello_refuse(refusal, FRAME_REFUSED_KNOWN, "new stream with an id that was in use");
        return HELLO_REFUSE;
    }
    if (h->epoch <= t->epoch) {
        hello_refuse(refusal, FRAME_REFUSED_STALE, "epoch %llu, the last was %llu",
                     (unsigned long long)h->epoch, (unsigned long long)t->epoch);
        return HELLO_REFUSE;
    }
    if (!t->finished) {
        *refusal = t->refusal;
        return HELLO_REFUSE;
    }
    if (h->delivered != t->sent) {
        hello_refuse(refusal, FRAME_REFUSED_OFFSET, "delivered %llu of a stream finished at %llu",
                     (unsigned long long)h->delivered, (unsigned long long)t->sent);
        return HELLO_REFUSE;
    }
    return HELLO_FINISHED;
}

enum hello_verdict hello_decide(const struct hello *h, const struct hello_facts *facts,
                                struct hello_refusal *ret_refusal)
{
    /* Who, and for which move, before anything is said about streams. */
    if (!facts->move_known) {
        hello_refuse(ret_refusal, FRAME_REFUSED_MOVE, "move %s is not known here", h->move);
        return HELLO_REFUSE;
    }
    if (!facts->peer_is_source) {
        hello_refuse(ret_refusal, FRAME_REFUSED_DENIED, "peer is not the source of move %s",
                     h->move);
        return HELLO_REFUSE;
    }
    if (!facts->channel_open) {
        hello_refuse(ret_refusal, FRAME_REFUSED_CHANNEL, "move %s has no channel %u here", h->move,
                     h->channel);
        return HELLO_REFUSE;
    }
    if (facts->known == HELLO_KNOWN_LIVE) {
        return decide_live(h, facts, ret_refusal);
    }
    if (facts->known == HELLO_KNOWN_GONE) {
        return decide_gone(h, facts->tombstone, ret_refusal);
    }
    if (h->resume) {
        hello_refuse(ret_refusal, FRAME_REFUSED_UNKNOWN, "stream is not known here");
        return HELLO_REFUSE;
    }
    if (!facts->accepting || facts->channel_taken) {
        hello_refuse(ret_refusal, FRAME_REFUSED_BUSY,
                     facts->accepting ? "channel %u is taken" : "no new streams now (channel %u)",
                     h->channel);
        return HELLO_REFUSE;
    }
    return HELLO_START;
}

size_t hello_put_refused(uint8_t *buf, const struct hello_refusal *refusal)
{
    return frame_put_note(buf, FRAME_REFUSED, 0, (uint16_t)refusal->code, refusal->text);
}

size_t hello_put_finished(uint8_t *buf, const struct hello_tombstone *t,
                          const uint8_t instance[FRAME_ID])
{
    return frame_put_hello_ok(buf, FRAME_FINISHED, t->delivered, instance, 0);
}
