/* What the tests of the stream protocol share: frames as hex, and one end of a stream that is
 * driven by hand. The hex strings are the examples of docs/stream-protocol.md. */
#pragma once

#include "lib/unit.h"

#include "relay/protocol.h"

#define S FERRY_NS_PER_S
#define MS FERRY_NS_PER_MS
#define T0 (100 * S)

/* ---- bytes ---- */

static inline size_t unhex(const char *hex, uint8_t *out)
{
    size_t n = 0;

    while (*hex) {
        unsigned v;

        if (*hex == ' ') {
            hex++;
            continue;
        }
        assert_int_equal(sscanf(hex, "%2x", &v), 1);
        out[n++] = (uint8_t)v;
        hex += 2;
    }
    return n;
}

static inline void assert_hex(const uint8_t *bytes, size_t n, const char *hex)
{
    uint8_t want[1024];
    size_t len = unhex(hex, want);

    assert_int_equal(n, len);
    assert_memory_equal(bytes, want, len);
}

/* ---- HELLO ---- */

#define ID_HEX "00112233445566778899aabbccddeeff"
#define HELLO_NEW_HEX                                                                              \
    "01 01 0000 00000029 0000000000000000"                                                         \
    " 0001 0005 0000c000 0000000000000001 " ID_HEX " 00100000 6d6f766531"
#define HELLO_RESUME_HEX                                                                           \
    "01 02 0000 00000029 0000000000000400"                                                         \
    " 0001 0005 0000c000 0000000000000002 " ID_HEX " 000ffc00 6d6f766531"

static inline struct hello example_hello(void)
{
    struct hello h = {.epoch = 1, .channel = 49152, .window = 1 << 20, .move = "move1"};

    unhex(ID_HEX, h.id);
    return h;
}

/* ---- one end, driven by hand ---- */

static const uint8_t instance_a[FRAME_ID] = "instance-number";
static const uint8_t instance_b[FRAME_ID] = "another-instanc";

/* The output so far as bytes; sent completely. */
struct sent {
    uint8_t bytes[1 << 20];
    size_t n;
    unsigned count[FRAME_TYPE_COUNT];
    struct frame last[FRAME_TYPE_COUNT];
    uint8_t note[FRAME_TYPE_COUNT][FRAME_NOTE_MAX];
};
static struct sent sent;

static inline void flush(struct protocol *p, int64_t now)
{
    struct iovec parts[2];

    memset(&sent, 0, sizeof(sent));
    for (int n; (n = protocol_output(p, now, parts)) > 0;) {
        size_t total = 0;

        for (int i = 0; i < n; i++) {
            assert_true(sent.n + parts[i].iov_len <= sizeof(sent.bytes));
            memcpy(sent.bytes + sent.n, parts[i].iov_base, parts[i].iov_len);
            sent.n += parts[i].iov_len;
            total += parts[i].iov_len;
        }
        protocol_sent(p, total);
    }
    for (size_t at = 0; at < sent.n;) {
        struct frame f;

        assert_int_equal(frame_get(sent.bytes + at, &f, NULL), 0);
        sent.count[f.type]++;
        sent.last[f.type] = f;
        memcpy(sent.note[f.type], sent.bytes + at + FRAME_HEADER,
               f.length < FRAME_NOTE_MAX ? f.length : FRAME_NOTE_MAX);
        at += FRAME_HEADER + f.length;
        assert_true(at <= sent.n);
    }
}

static inline void feed(struct protocol *p, const void *bytes, size_t n, int64_t now)
{
    for (size_t at = 0; at < n;) {
        void *where;
        size_t space = protocol_recv_space(p, &where);

        assert_true(space > 0);
        space = space < n - at ? space : n - at;
        memcpy(where, (const uint8_t *)bytes + at, space);
        protocol_received(p, space, now);
        at += space;
    }
}

static inline void feed_hex(struct protocol *p, const char *hex, int64_t now)
{
    uint8_t buf[2048];

    feed(p, buf, unhex(hex, buf), now);
}

static inline void feed_frame(struct protocol *p, enum frame_type type, uint8_t flags,
                              uint64_t offset, int64_t now)
{
    uint8_t buf[FRAME_HEADER];

    feed(p, buf, frame_put(buf, type, flags, 0, offset), now);
}

static inline void feed_data(struct protocol *p, uint64_t offset, size_t n, int64_t now)
{
    uint8_t *buf = calloc(1, FRAME_HEADER + n);

    assert_non_null(buf);
    frame_put(buf, FRAME_DATA, 0, (uint32_t)n, offset);
    for (size_t i = 0; i < n; i++) {
        buf[FRAME_HEADER + i] = (uint8_t)(offset + i);
    }
    feed(p, buf, FRAME_HEADER + n, now);
    free(buf);
}

static inline void feed_ack(struct protocol *p, uint8_t flags, uint64_t delivered, uint32_t window,
                            int64_t now)
{
    uint8_t buf[64];

    feed(p, buf, frame_put_ack(buf, flags, delivered, window), now);
}

static inline void feed_hello_ok(struct protocol *p, uint8_t flags, const uint8_t *instance,
                                 uint64_t delivered, uint32_t window, int64_t now)
{
    uint8_t buf[64];

    feed(p, buf, frame_put_hello_ok(buf, flags, delivered, instance, window), now);
}

static inline void feed_note(struct protocol *p, enum frame_type type, uint8_t flags, uint16_t code,
                             const char *text, int64_t now)
{
    uint8_t buf[512];

    feed(p, buf, frame_put_note(buf, type, flags, code, text), now);
}

/* The unix side writes `n` bytes. */
static inline void app_writes(struct protocol *p, size_t n)
{
    struct protocol_stats st;

    protocol_stats(p, &st);
    for (size_t at = 0; at < n;) {
        void *where;
        size_t space = protocol_read_space(p, &where);

        assert_true(space > 0);
        space = space < n - at ? space : n - at;
        for (size_t i = 0; i < space; i++) {
            ((uint8_t *)where)[i] = (uint8_t)(st.read + at + i);
        }
        protocol_unix_read(p, space);
        at += space;
    }
}

/* The unix side takes all there is; returns how much. */
static inline size_t app_reads(struct protocol *p, int64_t now)
{
    struct iovec vec[8];
    size_t total = 0;

    for (int n; (n = protocol_write_vec(p, vec, 8)) > 0;) {
        size_t sum = 0;

        for (int i = 0; i < n; i++) {
            sum += vec[i].iov_len;
        }
        protocol_unix_written(p, sum, now);
        total += sum;
    }
    if (protocol_shutdown_due(p)) {
        protocol_shutdown_done(p, now);
    }
    return total;
}

static inline struct protocol_config example_config(void)
{
    struct protocol_config c = {.channel = 49152, .move = "move1"};

    protocol_config_defaults(&c);
    unhex(ID_HEX, c.id);
    memcpy(c.instance, instance_a, FRAME_ID);
    return c;
}

static inline struct protocol *dialled_source(void)
{
    struct protocol_config c = example_config();
    struct protocol *p = protocol_new_source(&c, T0);

    assert_int_equal(protocol_dial_at(p), T0);
    protocol_dialling(p);
    assert_int_equal(protocol_dial_at(p), PROTOCOL_NEVER);
    protocol_connected(p, T0);
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_HELLO], 1);
    return p;
}

static inline struct protocol *open_source(void)
{
    struct protocol *p = dialled_source();

    feed_hello_ok(p, 0, instance_a, 0, 1 << 20, T0);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_PING], 1);
    feed_frame(p, FRAME_PONG, 0, sent.last[FRAME_PING].offset, T0 + MS);
    return p;
}

static inline struct protocol *open_target(void)
{
    struct protocol_config c = example_config();
    struct hello h = example_hello();
    struct protocol *p = protocol_new_target(&c, &h, T0);

    assert_int_equal(protocol_state(p), PROTOCOL_OPENING);
    flush(p, T0);
    assert_int_equal(sent.n, 0); /* nothing is said before the unix socket is there */
    protocol_unix_connected(p, T0);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_HELLO_OK], 1);
    assert_int_equal(sent.count[FRAME_PING], 1);
    feed_frame(p, FRAME_PONG, 0, sent.last[FRAME_PING].offset, T0 + MS);
    return p;
}

/* A connected source that lost its connection and has a new one on which HELLO was sent. */
static inline void redial(struct protocol *p, int64_t now)
{
    protocol_disconnected(p, now, "reset by peer");
    assert_true(protocol_dial_at(p) > now && protocol_dial_at(p) <= now + 2 * S);
    protocol_connected(p, now);
    flush(p, now);
    assert_int_equal(sent.count[FRAME_HELLO], 1);
}

static inline void hello_again(struct protocol *p, uint64_t epoch, uint64_t delivered,
                               uint32_t window, int64_t now)
{
    struct hello h = example_hello();
    struct hello_refusal refusal;

    h.resume = true;
    h.epoch = epoch;
    h.delivered = delivered;
    h.window = window;
    assert_int_equal(protocol_attach(p, &h, now, &refusal), 0);
}

static inline void assert_closed(const struct protocol *p, enum protocol_end end, unsigned code)
{
    assert_string_equal(protocol_state_name(protocol_state(p)), "closed");
    assert_string_equal(protocol_end_name(protocol_outcome(p)->end), protocol_end_name(end));
    assert_int_equal(protocol_outcome(p)->code, code);
}
