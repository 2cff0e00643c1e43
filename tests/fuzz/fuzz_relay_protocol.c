/* A hostile peer and a clumsy application against one end of a stream. The input is a program: each
 * byte chooses what happens next, the bytes behind it say with what. Frames come in raw, or with
 * good headers and numbers near those that matter, so that the fuzzer gets past the first check. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "relay/protocol/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
    const uint8_t *at, *end;
    struct protocol *p;
    bool target, connected;
    uint64_t epoch;
    int64_t now;
    uint8_t frame[FRAME_HEADER]; /* header being sent, to be checked */
    size_t frame_len, payload_left;
};

static void must(bool true_thing)
{
    if (!true_thing) {
        abort();
    }
}

static uint8_t byte(struct fuzz *f)
{
    return f->at < f->end ? *f->at++ : 0;
}

/* A number at or near one that means something to the stream. */
static uint64_t number(struct fuzz *f)
{
    struct protocol_stats st;
    uint8_t b = byte(f);

    protocol_stats(f->p, &st);
    const uint64_t marks[] = {0,          st.read,          st.acked, st.received,
                              st.written, FRAME_NUMBER_MAX, 1000,     UINT64_C(1) << 32};

    return marks[b & 7] + ((b >> 3) & 7) - (b >> 6);
}

static void feed(struct fuzz *f, const uint8_t *bytes, size_t n)
{
    while (n > 0 && f->connected) {
        void *where;
        size_t space = protocol_recv_space(f->p, &where);

        must(space > 0);
        space = space < n ? space : n;
        memcpy(where, bytes, space);
        protocol_received(f->p, space, f->now);
        bytes += space;
        n -= space;
    }
}

static void feed_raw(struct fuzz *f)
{
    size_t n = byte(f);

    n = n < (size_t)(f->end - f->at) ? n : (size_t)(f->end - f->at);
    feed(f, f->at, n);
    f->at += n;
}

static void feed_frame(struct fuzz *f)
{
    uint8_t buf[FRAME_HEADER + 2048] = {0};
    uint8_t type = byte(f), flags = byte(f);
    uint64_t offset = number(f);
    size_t length = 8U * byte(f) + (flags >> 5);

    switch (type & 15) {
    case FRAME_HELLO_OK:
        length = FRAME_HELLO_OK_LENGTH;
        memset(buf + FRAME_HEADER, flags & 2 ? 1 : 0, FRAME_ID);
        frame_set_u32(buf + FRAME_HEADER + FRAME_ID, (uint32_t)number(f));
        break;
    case FRAME_ACK:
        length = FRAME_ACK_LENGTH;
        frame_set_u32(buf + FRAME_HEADER, (uint32_t)number(f));
        break;
    case FRAME_REFUSED:
    case FRAME_RESET:
        offset = 0;
        length = 2 + (length & 255);
        frame_set_u16(buf + FRAME_HEADER, byte(f));
        break;
    case FRAME_FIN:
    case FRAME_PING:
    case FRAME_PONG:
        length = 0;
        break;
    default:
        break;
    }
    frame_put(buf, (enum frame_type)(type & 15), flags & 1, (uint32_t)length, offset);
    feed(f, buf, FRAME_HEADER + length);
}

/* What is sent must itself be frames. */
static void check_sent(struct fuzz *f, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        size_t part;

        if (f->payload_left > 0) {
            part = n < f->payload_left ? n : f->payload_left;
            f->payload_left -= part;
        } else {
            struct frame head;

            part = n < FRAME_HEADER - f->frame_len ? n : FRAME_HEADER - f->frame_len;
            memcpy(f->frame + f->frame_len, bytes, part);
            f->frame_len += part;
            if (f->frame_len == FRAME_HEADER) {
                must(frame_get(f->frame, &head, NULL) == 0);
                f->payload_left = head.length;
                f->frame_len = 0;
            }
        }
        bytes += part;
        n -= part;
    }
}

static void send_some(struct fuzz *f)
{
    size_t most = 16U * byte(f);
    struct iovec parts[2];
    int n;

    while (most > 0 && (n = protocol_output(f->p, f->now, parts)) > 0) {
        size_t part = parts[0].iov_len < most ? parts[0].iov_len : most;

        must(n <= 2 && parts[0].iov_len > 0 && parts[n - 1].iov_len > 0);
        check_sent(f, parts[0].iov_base, part);
        protocol_sent(f->p, part);
        most -= part;
    }
}

static void disconnect(struct fuzz *f)
{
    f->connected = false;
    f->frame_len = f->payload_left = 0;
    protocol_disconnected(f->p, f->now, "fuzz");
}

static void connect_again(struct fuzz *f)
{
    struct hello h = {.resume = true, .epoch = ++f->epoch, .move = "m", .channel = 1};
    struct hello_refusal refusal;

    if (!f->target) {
        if (!f->connected && protocol_dial_at(f->p) != PROTOCOL_NEVER) {
            protocol_connected(f->p, f->now);
            f->connected = true;
        }
        return;
    }
    memset(h.id, 1, FRAME_ID);
    h.delivered = number(f) % FRAME_NUMBER_MAX;
    h.window = (uint32_t)(number(f) % FRAME_WINDOW_MAX);
    h.epoch -= byte(f) & 1;
    if (protocol_attach(f->p, &h, f->now, &refusal) == 0) {
        f->connected = true;
        f->frame_len = f->payload_left = 0;
    }
}

static void app_writes(struct fuzz *f)
{
    size_t n = 32U * byte(f) + 1;
    void *where;
    size_t space = protocol_read_space(f->p, &where);

    if (space > 0) {
        n = n < space ? n : space;
        memset(where, 'a', n);
        protocol_unix_read(f->p, n);
    }
}

static void app_reads(struct fuzz *f)
{
    size_t n = 32U * byte(f) + 1;
    struct iovec vec[2];

    if (protocol_write_vec(f->p, vec, 2) > 0) {
        n = n < vec[0].iov_len ? n : vec[0].iov_len;
        protocol_unix_written(f->p, n, f->now);
    } else if (protocol_shutdown_due(f->p)) {
        protocol_shutdown_done(f->p, f->now);
    }
}

static void app_ends(struct fuzz *f)
{
    uint8_t how = byte(f);

    if (how < 128) {
        protocol_unix_eof(f->p, f->now);
    } else if (how < 160) {
        protocol_unix_failed(f->p, "failed", f->now);
    } else if (how < 192) {
        protocol_unix_write_failed(f->p, "failed", f->now);
    } else if (how < 224) {
        protocol_cancel(f->p, "cancelled", f->now);
    } else if (how < 240) {
        protocol_unix_refused(f->p, "refused", f->now);
    } else {
        protocol_set_window_max(f->p, 64U * how);
        protocol_set_resume_window(f->p, how & 1 ? PROTOCOL_HOLD : PROTOCOL_RESUME_MAX);
    }
}

static void pass_time(struct fuzz *f)
{
    uint8_t b = byte(f);

    f->now += (b & 127) * (b & 128 ? FERRY_NS_PER_S : FERRY_NS_PER_MS);
    protocol_tick(f->p, f->now);
    must(protocol_deadline(f->p) > f->now || protocol_dial_at(f->p) <= f->now);
}

static void step(struct fuzz *f)
{
    struct protocol_stats st;

    switch (byte(f) % 10) {
    case 0:
        feed_raw(f);
        break;
    case 1:
    case 2:
        feed_frame(f);
        break;
    case 3:
        send_some(f);
        break;
    case 4:
        app_writes(f);
        break;
    case 5:
        app_reads(f);
        break;
    case 6:
        app_ends(f);
        break;
    case 7:
        pass_time(f);
        break;
    case 8:
        disconnect(f);
        break;
    case 9:
        connect_again(f);
        break;
    }
    if (protocol_hangup(f->p) == PROTOCOL_DROP) {
        disconnect(f);
    }
    protocol_stats(f->p, &st);
    must(st.memory <= protocol_memory_max(f->p));
    must(st.written <= st.received && st.acked <= st.read);
}

static void first_frame(const uint8_t *data, size_t size)
{
    struct hello_refusal refusal;
    struct hello h;
    uint8_t buf[FRAME_HELLO_MAX];
    size_t have = 0;

    for (size_t need; (need = hello_need(buf, have)) > 0; have += need) {
        must(have + need <= sizeof(buf));
        if (need > size - have) {
            return;
        }
        memcpy(buf + have, data + have, need);
    }
    if (hello_get(buf, have, &h, &refusal) == 0) {
        uint8_t again[FRAME_HELLO_MAX];

        must(hello_put(again, &h) == have && memcmp(buf, again, have) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct protocol_config c = {.move = "m", .channel = 1};
    struct fuzz f = {.at = data, .end = data + size, .now = FERRY_NS_PER_S};
    uint8_t how = byte(&f);

    if (how % 4 == 0) {
        first_frame(f.at, (size_t)(f.end - f.at));
        return 0;
    }
    protocol_config_defaults(&c);
    c.block_size = 4096;
    c.window_start = c.window_max = c.send_max = 20000;
    memset(c.id, 1, FRAME_ID);
    f.target = how % 4 == 1;
    f.connected = true;
    f.epoch = 1;
    if (f.target) {
        struct hello h = {.epoch = 1, .window = 1000, .move = "m", .channel = 1};

        memset(h.id, 1, FRAME_ID);
        f.p = protocol_new_target(&c, &h, f.now);
        if (how & 4) {
            protocol_unix_connected(f.p, f.now);
        }
    } else {
        f.p = protocol_new_source(&c, f.now);
        protocol_connected(f.p, f.now);
    }
    while (f.at < f.end) {
        step(&f);
    }
    protocol_free(f.p);
    return 0;
}
