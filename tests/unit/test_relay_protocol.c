/* Ferry stream protocol 1 in tables: every frame, every rule, every way out of every state. The hex
 * strings are the examples of docs/stream-protocol.md. */
#include "lib/unit.h"

#include "relay/protocol/protocol.h"
#include "relay/protocol/segments.h"
#include "relay/protocol/window.h"

#define S FERRY_NS_PER_S
#define MS FERRY_NS_PER_MS
#define T0 (100 * S)

/* ---- bytes ---- */

static size_t unhex(const char *hex, uint8_t *out)
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

static void assert_hex(const uint8_t *bytes, size_t n, const char *hex)
{
    uint8_t want[1024];
    size_t len = unhex(hex, want);

    assert_int_equal(n, len);
    assert_memory_equal(bytes, want, len);
}

static void headers(void **state)
{
    static const struct {
        const char *hex, *error; /* NULL = good */
    } cases[] = {
        {"01 01 0000 00000025 0000000000000000", NULL},
        {"01 02 0000 00000064 0000000000000009", NULL},
        {"02 00 0000 00000014 0000000000000000", NULL},
        {"02 01 0000 00000014 0000000000000000", NULL},
        {"03 00 0000 00000002 0000000000000000", NULL},
        {"04 00 0000 00000001 0000000000000000", NULL},
        {"04 00 0000 00040000 3fffffffffffffff", NULL},
        {"05 00 0000 00000004 0000000000000007", NULL},
        {"05 01 0000 00000004 0000000000000007", NULL},
        {"06 00 0000 00000000 0000000000000007", NULL},
        {"07 00 0000 00000000 0000000000000007", NULL},
        {"08 00 0000 00000000 0000000000000007", NULL},
        {"09 00 0000 00000102 0000000000000000", NULL},
        {"09 01 0000 00000002 0000000000000000", NULL},
        {"00 00 0000 00000000 0000000000000000", "frame of unknown type 0"},
        {"0a 00 0000 00000000 0000000000000000", "frame of unknown type 10"},
        {"ff ff ffff ffffffff ffffffffffffffff", "frame of unknown type 255"},
        {"16 03 0100 c8010000 c403030000000000", "frame of unknown type 22"},
        {"01 00 0000 00000025 0000000000000000", "HELLO must be either NEW or RESUME"},
        {"01 03 0000 00000025 0000000000000000", "HELLO must be either NEW or RESUME"},
        {"01 04 0000 00000025 0000000000000000", "HELLO with unknown flags 0x04"},
        {"01 01 0000 00000024 0000000000000000", "HELLO of 36 bytes, allowed are 37 to 100"},
        {"01 01 0000 00000065 0000000000000000", "HELLO of 101 bytes, allowed are 37 to 100"},
        {"02 02 0000 00000014 0000000000000000", "HELLO-OK with unknown flags 0x02"},
        {"02 00 0000 00000013 0000000000000000", "HELLO-OK of 19 bytes, allowed are 20 to 20"},
        {"03 00 0000 00000001 0000000000000000", "REFUSED of 1 bytes, allowed are 2 to 258"},
        {"03 00 0000 00000103 0000000000000000", "REFUSED of 259 bytes, allowed are 2 to 258"},
        {"03 00 0000 00000002 0000000000000001", "REFUSED with offset 1"},
        {"03 01 0000 00000002 0000000000000000", "REFUSED with unknown flags 0x01"},
        {"04 00 0000 00000000 0000000000000000", "DATA of 0 bytes, allowed are 1 to 262144"},
        {"04 00 0000 00040001 0000000000000000", "DATA of 262145 bytes, allowed are 1 to 262144"},
        {"04 80 0000 00000001 0000000000000000", "DATA with unknown flags 0x80"},
        {"04 00 0001 00000001 0000000000000000", "DATA with reserved bytes set"},
        {"04 00 0100 00000001 0000000000000000", "DATA with reserved bytes set"},
        {"04 00 0000 00000001 4000000000000000", "DATA with offset 4611686018427387904"},
        {"05 02 0000 00000004 0000000000000000", "ACK with unknown flags 0x02"},
        {"05 00 0000 00000005 0000000000000000", "ACK of 5 bytes, allowed are 4 to 4"},
        {"06 00 0000 00000001 0000000000000000", "FIN of 1 bytes, allowed are 0 to 0"},
        {"07 00 0000 00000008 0000000000000000", "PING of 8 bytes, allowed are 0 to 0"},
        {"08 01 0000 00000000 0000000000000000", "PONG with unknown flags 0x01"},
        {"09 02 0000 00000002 0000000000000000", "RESET with unknown flags 0x02"},
        {"09 00 0000 00000000 0000000000000000", "RESET of 0 bytes, allowed are 2 to 258"},
        {"09 00 0000 00000002 0000000000000008", "RESET with offset 8"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ferry_error err = {0};
        struct frame f;
        uint8_t head[16], again[16];

        assert_int_equal(unhex(cases[i].hex, head), 16);
        int rc = frame_get(head, &f, &err);

        assert_int_equal(rc, cases[i].error ? -FERRY_PEER : 0);
        if (cases[i].error) {
            assert_string_equal(err.msg, cases[i].error);
        } else {
            frame_put(again, f.type, f.flags, f.length, f.offset);
            assert_memory_equal(head, again, 16);
        }
    }
}

static void notes(void **state)
{
    char long_text[400], text[FRAME_TEXT_MAX + 1];
    uint8_t buf[512];
    uint16_t code;

    (void)state;
    size_t n = frame_put_note(buf, FRAME_REFUSED, 0, FRAME_REFUSED_EXPIRED, "too late");

    assert_hex(buf, n, "03 00 0000 0000000a 0000000000000000 0009 746f6f206c617465");
    memset(long_text, 'x', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_equal(frame_put_note(buf, FRAME_RESET, 0, 1, long_text), 16 + 2 + 256);
    frame_get_note(buf + 16, 258, &code, text);
    assert_int_equal(strlen(text), 256);
    frame_get_note((const uint8_t *)"\x00\x63\x1b[2J\xc3\xa4\n\0", 10, &code, text);
    assert_int_equal(code, 99);
    assert_string_equal(text, "?[2J????");
    assert_string_equal(frame_refusal_name(99), "unknown code");
    assert_string_equal(frame_refusal_name(FRAME_REFUSED_BUSY), "busy");
    assert_string_equal(frame_reset_name(0), "unknown code");
    assert_string_equal(frame_reset_name(FRAME_RESET_UNIX), "unix socket");
    assert_string_equal(frame_type_name(FRAME_HELLO_OK), "HELLO-OK");
    assert_string_equal(frame_type_name(77), "unknown");
}

/* ---- HELLO ---- */

#define ID_HEX "00112233445566778899aabbccddeeff"
#define HELLO_NEW_HEX                                                                              \
    "01 01 0000 00000029 0000000000000000"                                                         \
    " 0001 0005 0000c000 0000000000000001 " ID_HEX " 00100000 6d6f766531"
#define HELLO_RESUME_HEX                                                                           \
    "01 02 0000 00000029 0000000000000400"                                                         \
    " 0001 0005 0000c000 0000000000000002 " ID_HEX " 000ffc00 6d6f766531"

static struct hello example_hello(void)
{
    struct hello h = {.epoch = 1, .channel = 49152, .window = 1 << 20, .move = "move1"};

    unhex(ID_HEX, h.id);
    return h;
}

static void hello_bytes(void **state)
{
    struct hello h = example_hello(), again;
    struct hello_refusal refusal;
    uint8_t buf[FRAME_HELLO_MAX];

    (void)state;
    size_t n = hello_put(buf, &h);

    assert_hex(buf, n, HELLO_NEW_HEX);
    assert_int_equal(hello_get(buf, n, &again, &refusal), 0);
    assert_memory_equal(&h, &again, sizeof(h));
    /* What must be there before more can be said. */
    assert_int_equal(hello_need(buf, 0), 16);
    assert_int_equal(hello_need(buf, 15), 1);
    assert_int_equal(hello_need(buf, 16), 2);
    assert_int_equal(hello_need(buf, 17), 1);
    assert_int_equal(hello_need(buf, 18), n - 18);
    assert_int_equal(hello_need(buf, n - 1), 1);
    assert_int_equal(hello_need(buf, n), 0);
    h.resume = true;
    h.epoch = 2;
    h.delivered = 0x400;
    h.window = (1 << 20) - 0x400;
    n = hello_put(buf, &h);
    assert_hex(buf, n, HELLO_RESUME_HEX);
    assert_int_equal(hello_get(buf, n, &again, &refusal), 0);
    assert_memory_equal(&h, &again, sizeof(h));
}

static void hello_malformed(void **state)
{
    static const struct {
        const char *hex;
        enum frame_refusal code;
        const char *text;
    } cases[] = {
        {"01 01 0000 00000029 0000000000000000 0002", FRAME_REFUSED_VERSION,
         "version 2, this relay speaks 1"},
        /* A later version may have other lengths and flags. */
        {"01 f0 ffff 00001000 0000000000000000 0003", FRAME_REFUSED_VERSION,
         "version 3, this relay speaks 1"},
        {"01 01 0000 00000001 0000000000000000", FRAME_REFUSED_MALFORMED,
         "HELLO of 1 bytes, allowed are 37 to 100"},
        {"04 00 0000 00000001 0000000000000000", FRAME_REFUSED_MALFORMED,
         "first frame is DATA, not HELLO"},
        {"02 00 0000 00000014 0000000000000000", FRAME_REFUSED_MALFORMED,
         "first frame is HELLO-OK, not HELLO"},
        {"47 45 5420 2f20 4854 54502f312e310d0a", FRAME_REFUSED_MALFORMED,
         "frame of unknown type 71"},
        {"01 03 0000 00000029 0000000000000000 0001", FRAME_REFUSED_MALFORMED,
         "HELLO must be either NEW or RESUME"},
        {"01 01 0000 00000029 0000000000000001 0001 0005 0000c000 0000000000000001 " ID_HEX
         " 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong delivered offset of a new stream"},
        {"01 01 0000 00000029 0000000000000000 0001 0004 0000c000 0000000000000001 " ID_HEX
         " 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong move uid"},
        {"01 01 0000 00000029 0000000000000000 0001 ffff 0000c000 0000000000000001 " ID_HEX
         " 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong move uid"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 0000000000000001 " ID_HEX
         " 00100000 6d6f76652f",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong move uid"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 0000000000000001 " ID_HEX
         " 00100000 6d6f760031",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong move uid"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 0000000000000000 " ID_HEX
         " 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong epoch"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 ffffffffffffffff " ID_HEX
         " 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong epoch"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 0000000000000001 "
         "00000000000000000000000000000000 00100000 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong stream id"},
        {"01 01 0000 00000029 0000000000000000 0001 0005 0000c000 0000000000000001 " ID_HEX
         " 04000001 6d6f766531",
         FRAME_REFUSED_MALFORMED, "HELLO with a wrong window"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hello_refusal refusal;
        struct hello h;
        uint8_t buf[256] = {0};
        size_t n = unhex(cases[i].hex, buf);

        assert_int_equal(hello_need(buf, n), 0);
        assert_int_equal(hello_get(buf, n, &h, &refusal), -FERRY_PEER);
        assert_string_equal(refusal.text, cases[i].text);
        assert_int_equal(refusal.code, cases[i].code);
    }
}

static void hello_decisions(void **state)
{
    enum { NO_MOVE = 1, NOT_SOURCE = 2, NO_CHANNEL = 4, TAKEN = 8, FULL = 16, OTHER_PEER = 32 };
    static const struct {
        const char *name;
        bool resume;
        uint64_t epoch;
        enum hello_known known;
        int facts;
        const char *known_move;
        uint32_t known_channel;
        enum hello_verdict verdict;
        enum frame_refusal code;
    } cases[] = {
        {"new", false, 1, HELLO_KNOWN_NOT, 0, "", 0, HELLO_START, 0},
        {"no move", false, 1, HELLO_KNOWN_NOT, NO_MOVE, "", 0, HELLO_REFUSE, FRAME_REFUSED_MOVE},
        {"not its source", false, 1, HELLO_KNOWN_NOT, NOT_SOURCE, "", 0, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
        {"no channel", false, 1, HELLO_KNOWN_NOT, NO_CHANNEL, "", 0, HELLO_REFUSE,
         FRAME_REFUSED_CHANNEL},
        {"taken", false, 1, HELLO_KNOWN_NOT, TAKEN, "", 0, HELLO_REFUSE, FRAME_REFUSED_BUSY},
        {"full", false, 1, HELLO_KNOWN_NOT, FULL, "", 0, HELLO_REFUSE, FRAME_REFUSED_BUSY},
        {"resume unknown", true, 2, HELLO_KNOWN_NOT, 0, "", 0, HELLO_REFUSE, FRAME_REFUSED_UNKNOWN},
        {"resume", true, 6, HELLO_KNOWN_LIVE, 0, "move1", 49152, HELLO_ATTACH, 0},
        {"resume though full", true, 6, HELLO_KNOWN_LIVE, FULL | TAKEN, "move1", 49152,
         HELLO_ATTACH, 0},
        {"new with known id", false, 6, HELLO_KNOWN_LIVE, 0, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_KNOWN},
        {"same epoch", true, 5, HELLO_KNOWN_LIVE, 0, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_STALE},
        {"old epoch", true, 4, HELLO_KNOWN_LIVE, 0, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_STALE},
        {"other move", true, 6, HELLO_KNOWN_LIVE, 0, "move2", 49152, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
        {"other channel", true, 6, HELLO_KNOWN_LIVE, 0, "move1", 0, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
        {"other identity", true, 6, HELLO_KNOWN_LIVE, OTHER_PEER, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
        {"guessed id, no move", true, 6, HELLO_KNOWN_LIVE, NO_MOVE, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_MOVE},
        {"guessed id, not source", true, 6, HELLO_KNOWN_LIVE, NOT_SOURCE, "move1", 49152,
         HELLO_REFUSE, FRAME_REFUSED_DENIED},
        {"finished", true, 6, HELLO_KNOWN_GONE, 0, "move1", 49152, HELLO_FINISHED, 0},
        {"finished, new", false, 6, HELLO_KNOWN_GONE, 0, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_KNOWN},
        {"finished, stale", true, 5, HELLO_KNOWN_GONE, 0, "move1", 49152, HELLO_REFUSE,
         FRAME_REFUSED_STALE},
        {"finished, other move", true, 6, HELLO_KNOWN_GONE, 0, "move2", 49152, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
        {"finished, other channel", true, 6, HELLO_KNOWN_GONE, 0, "move1", 1, HELLO_REFUSE,
         FRAME_REFUSED_DENIED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hello h = example_hello();
        struct hello_tombstone t = {.epoch = 5, .finished = true, .sent = 0, .delivered = 9};
        struct hello_refusal refusal = {0};
        int f = cases[i].facts;

        h.resume = cases[i].resume;
        h.epoch = cases[i].epoch;
        strcpy(t.move, cases[i].known_move);
        t.channel = cases[i].known_channel;
        struct hello_facts facts = {
            .move_known = !(f & NO_MOVE),
            .peer_is_source = !(f & NOT_SOURCE),
            .channel_open = !(f & NO_CHANNEL),
            .channel_taken = f & TAKEN,
            .accepting = !(f & FULL),
            .known = cases[i].known,
            .live_move = cases[i].known_move,
            .live_channel = cases[i].known_channel,
            .live_epoch = 5,
            .live_same_peer = !(f & OTHER_PEER),
            .tombstone = &t,
        };

        if (hello_decide(&h, &facts, &refusal) != cases[i].verdict ||
            refusal.code != cases[i].code) {
            fail_msg("%s: refused with %d (%s)", cases[i].name, (int)refusal.code, refusal.text);
        }
    }
}

static void tombstones_answer(void **state)
{
    struct hello h = example_hello();
    struct hello_tombstone t = {.move = "move1", .channel = 49152, .epoch = 1, .finished = true};
    struct hello_facts facts = {.move_known = true,
                                .peer_is_source = true,
                                .channel_open = true,
                                .known = HELLO_KNOWN_GONE,
                                .tombstone = &t};
    struct hello_refusal refusal;
    uint8_t buf[HELLO_ANSWER_MAX], instance[FRAME_ID];

    (void)state;
    memset(instance, 0xab, sizeof(instance));
    t.delivered = 1001;
    t.sent = 501;
    h.resume = true;
    h.epoch = 2;
    h.delivered = 501;
    assert_int_equal(hello_decide(&h, &facts, &refusal), HELLO_FINISHED);
    assert_hex(buf, hello_put_finished(buf, &t, instance),
               "02 01 0000 00000014 00000000000003e9 abababababababababababababababab 00000000");
    h.delivered = 500; /* it had acknowledged 501 */
    assert_int_equal(hello_decide(&h, &facts, &refusal), HELLO_REFUSE);
    assert_int_equal(refusal.code, FRAME_REFUSED_OFFSET);
    t.finished = false;
    t.refusal = (struct hello_refusal){.code = FRAME_REFUSED_EXPIRED, .text = "too late"};
    assert_int_equal(hello_decide(&h, &facts, &refusal), HELLO_REFUSE);
    assert_hex(buf, hello_put_refused(buf, &refusal),
               "03 00 0000 0000000a 0000000000000000 0009 746f6f206c617465");
}

/* ---- segments ---- */

static void segments_hold_bytes(void **state)
{
    struct segments s;
    const uint8_t *at;
    uint8_t *where;
    struct iovec vec[4];

    (void)state;
    segments_init(&s, 4096, 10000);
    assert_int_equal(segments_memory(&s), 0);
    assert_int_equal(segments_reserve(&s, 9000, true, &where), 4096);
    memset(where, 'a', 100);
    segments_commit(&s, 100);
    /* A read that may be large starts at a multiple of 64. */
    assert_int_equal(segments_reserve(&s, 9000, true, &where), 4096 - 128);
    assert_int_equal((uintptr_t)where % 64, 0);
    memset(where, 'b', 50);
    segments_commit(&s, 50);
    /* What need not be aligned makes the piece longer. */
    assert_int_equal(segments_reserve(&s, 10, false, &where), 10);
    memset(where, 'c', 10);
    segments_commit(&s, 10);
    assert_int_equal(segments_vec(&s, vec, 4), 2);
    assert_int_equal(vec[0].iov_len, 100);
    assert_int_equal(vec[1].iov_len, 60);
    assert_int_equal(segments_peek(&s, 149, &at), 11);
    assert_int_equal(at[0], 'b');
    assert_int_equal(at[1], 'c');
    assert_int_equal(segments_peek(&s, 160, &at), 0);
    segments_release(&s, 30);
    segments_release(&s, 20);
    assert_int_equal(segments_peek(&s, 29, &at), 0);
    assert_int_equal(segments_peek(&s, 30, &at), 70);
    segments_release(&s, 120);
    assert_int_equal(segments_vec(&s, vec, 4), 1);
    assert_int_equal(vec[0].iov_len, 40);
    assert_true(segments_reserve(&s, 9000, true, &where) > 0);
    assert_true(where >= (uint8_t *)vec[0].iov_base + 40);
    /* Not above the maximum, whatever is asked for. */
    for (size_t n; (n = segments_reserve(&s, SIZE_MAX / 2, true, &where)) > 0;) {
        segments_commit(&s, n);
    }
    assert_int_equal(s.end - s.begin, 10000);
    segments_release(&s, s.end);
    assert_true(segments_memory(&s) > 0);
    segments_trim(&s);
    assert_int_equal(segments_memory(&s), 0);
    segments_done(&s);
}

static void segments_are_bounded(void **state)
{
    static const size_t sizes[] = {1, 63, 64, 65, 1000, 1025, 4095, 4097};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct segments s;
        uint8_t *where;

        segments_init(&s, 8192, 300000);
        /* Full, and kept full by many small releases. */
        for (int k = 0; k < 400000 / (int)sizes[i] + 1000; k++) {
            size_t n = segments_reserve(&s, 8192, true, &where);

            if (n == 0) {
                assert_int_equal(s.end - s.begin, 300000);
                segments_release(&s, s.begin + 7 * sizes[i]);
                continue;
            }
            segments_commit(&s, n < sizes[i] ? n : sizes[i]);
            assert_true(segments_memory(&s) <= segments_memory_max(&s));
        }
        segments_done(&s);
    }
}

/* ---- window ---- */

static void windows_follow_the_path(void **state)
{
    struct window w;
    int64_t now = T0;

    (void)state;
    window_init(&w, 1 << 20, 8 << 20);
    /* 1000 MB/s over 0.2 ms: 400 KB are enough. */
    window_rtt(&w, 200000);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
    assert_true(w.rate > 0.9e9 && w.rate < 1.1e9);
    /* 1000 MB/s over 2 ms: 4 MB, reached in a few measurements. */
    window_connected(&w);
    window_rtt(&w, 2 * MS);
    for (int i = 0; i < 200; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_true(w.bytes > 3900000 && w.bytes < 4100000);
    /* A queue of our own making does not feed itself. */
    window_rtt(&w, 80 * MS);
    for (int i = 0; i < 200; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_true(w.bytes < 4100000);
    /* 1000 MB/s over 50 ms: the ceiling. */
    window_connected(&w);
    window_rtt(&w, 50 * MS);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 1000000, now);
    }
    assert_int_equal(w.bytes, 8 << 20);
    /* Little traffic: back to the start, slowly. */
    for (int i = 0; i < 3000; i++, now += MS) {
        window_delivered(&w, 1000, now);
    }
    assert_true(w.bytes < 8 << 20 && w.bytes > 4 << 20);
    for (int i = 0; i < 60000; i++, now += MS) {
        window_delivered(&w, 1000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
    /* Not known how far: the start. */
    window_connected(&w);
    for (int i = 0; i < 1000; i++, now += MS) {
        window_delivered(&w, 10000000, now);
    }
    assert_int_equal(w.bytes, 1 << 20);
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

static void flush(struct protocol *p, int64_t now)
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

static void feed(struct protocol *p, const void *bytes, size_t n, int64_t now)
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

static void feed_hex(struct protocol *p, const char *hex, int64_t now)
{
    uint8_t buf[2048];

    feed(p, buf, unhex(hex, buf), now);
}

static void feed_frame(struct protocol *p, enum frame_type type, uint8_t flags, uint64_t offset,
                       int64_t now)
{
    uint8_t buf[FRAME_HEADER];

    feed(p, buf, frame_put(buf, type, flags, 0, offset), now);
}

static void feed_data(struct protocol *p, uint64_t offset, size_t n, int64_t now)
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

static void feed_ack(struct protocol *p, uint8_t flags, uint64_t delivered, uint32_t window,
                     int64_t now)
{
    uint8_t buf[64];

    feed(p, buf, frame_put_ack(buf, flags, delivered, window), now);
}

static void feed_hello_ok(struct protocol *p, uint8_t flags, const uint8_t *instance,
                          uint64_t delivered, uint32_t window, int64_t now)
{
    uint8_t buf[64];

    feed(p, buf, frame_put_hello_ok(buf, flags, delivered, instance, window), now);
}

static void feed_note(struct protocol *p, enum frame_type type, uint8_t flags, uint16_t code,
                      const char *text, int64_t now)
{
    uint8_t buf[512];

    feed(p, buf, frame_put_note(buf, type, flags, code, text), now);
}

/* The unix side writes `n` bytes. */
static void app_writes(struct protocol *p, size_t n)
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
static size_t app_reads(struct protocol *p, int64_t now)
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

static struct protocol_config example_config(void)
{
    struct protocol_config c = {.channel = 49152, .move = "move1"};

    protocol_config_defaults(&c);
    unhex(ID_HEX, c.id);
    memcpy(c.instance, instance_a, FRAME_ID);
    return c;
}

static struct protocol *dialled_source(void)
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

static struct protocol *open_source(void)
{
    struct protocol *p = dialled_source();

    feed_hello_ok(p, 0, instance_a, 0, 1 << 20, T0);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_PING], 1);
    feed_frame(p, FRAME_PONG, 0, sent.last[FRAME_PING].offset, T0 + MS);
    return p;
}

static struct protocol *open_target(void)
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
static void redial(struct protocol *p, int64_t now)
{
    protocol_disconnected(p, now, "reset by peer");
    assert_true(protocol_dial_at(p) > now && protocol_dial_at(p) <= now + 2 * S);
    protocol_connected(p, now);
    flush(p, now);
    assert_int_equal(sent.count[FRAME_HELLO], 1);
}

static void hello_again(struct protocol *p, uint64_t epoch, uint64_t delivered, uint32_t window,
                        int64_t now)
{
    struct hello h = example_hello();
    struct hello_refusal refusal;

    h.resume = true;
    h.epoch = epoch;
    h.delivered = delivered;
    h.window = window;
    assert_int_equal(protocol_attach(p, &h, now, &refusal), 0);
}

static void assert_closed(const struct protocol *p, enum protocol_end end, unsigned code)
{
    assert_string_equal(protocol_state_name(protocol_state(p)), "closed");
    assert_string_equal(protocol_end_name(protocol_outcome(p)->end), protocol_end_name(end));
    assert_int_equal(protocol_outcome(p)->code, code);
}

static void opening_bytes(void **state)
{
    struct protocol *p = dialled_source();
    struct protocol_stats st;

    (void)state;
    assert_hex(sent.bytes, sent.n, HELLO_NEW_HEX);
    void *where;

    assert_int_equal(protocol_read_space(p, &where), 0); /* no window yet */
    assert_int_equal(protocol_deadline(p), T0 + PROTOCOL_ANSWER);
    feed_hello_ok(p, 0, instance_a, 0, 1 << 20, T0 + MS);
    assert_true(protocol_read_space(p, &where) == FRAME_DATA_MAX);
    flush(p, T0 + MS);
    assert_hex(sent.bytes, sent.n, "07 00 0000 00000000 0000000000000001");
    feed_hex(p, "08 00 0000 00000000 0000000000000001", T0 + 3 * MS);
    protocol_stats(p, &st);
    assert_int_equal(st.rtt_ns, 2 * MS);
    assert_int_equal(st.epoch, 1);
    assert_int_equal(st.resumes, 0);
    protocol_free(p);
    p = open_target();
    assert_hex(sent.bytes, 36,
               "02 00 0000 00000014 0000000000000000 696e7374616e63652d6e756d62657200 00100000");
    protocol_free(p);
}

/* Everything that ends a stream as a broken rule, by the state in which it comes. */
static void violations(void **state)
{
    enum { DIALLED, SOURCE, TARGET, FINISHED_IN };
    static const struct {
        int start;
        const char *hex, *text;
    } cases[] = {
        {DIALLED, "04 00 0000 00000001 0000000000000000", "DATA out of order"},
        {DIALLED, "07 00 0000 00000000 0000000000000000", "PING out of order"},
        {DIALLED, "09 00 0000 00000002 0000000000000000", "RESET out of order"},
        {DIALLED, "01 01 0000 00000025 0000000000000000", "HELLO out of order"},
        {DIALLED, "02 00 0000 00000014 0000000000000001 696e7374616e63652d6e756d62657200 00100000",
         "HELLO-OK acknowledges what was never sent: 1"},
        {DIALLED, "02 00 0000 00000014 0000000000000000 696e7374616e63652d6e756d62657200 04000001",
         "HELLO-OK window above the limit: 0"},
        {DIALLED, "02 01 0000 00000014 0000000000000000 696e7374616e63652d6e756d62657200 00000000",
         "HELLO-OK says finished at 0"},
        {SOURCE, "00", NULL}, /* part of a header is no violation yet */
        {SOURCE, "ff 00 0000 00000000 0000000000000000", "frame of unknown type 255"},
        {SOURCE, "04 00 0000 ffffffff 0000000000000000",
         "DATA of 4294967295 bytes, allowed are 1 to 262144"},
        {SOURCE, "01 01 0000 00000025 0000000000000000", "HELLO out of order"},
        {TARGET, "01 02 0000 00000025 0000000000000000", "HELLO out of order"},
        {SOURCE, "02 00 0000 00000014 0000000000000000", "HELLO-OK out of order"},
        {TARGET, "03 00 0000 00000002 0000000000000000", "REFUSED out of order"},
        {SOURCE, "04 00 0000 00000001 0000000000000001", "DATA at 1 leaves a gap behind 0"},
        {SOURCE, "04 00 0000 00000001 3fffffffffffffff",
         "DATA at 4611686018427387903 leaves a gap behind 0"},
        {SOURCE, "05 00 0000 00000004 0000000000000001 00100000",
         "ACK acknowledges what was never sent: 1"},
        {SOURCE, "05 00 0000 00000004 0000000000000000 000fffff", "ACK takes back a window: 0"},
        {SOURCE, "05 00 0000 00000004 0000000000000000 ffffffff", "ACK window above the limit: 0"},
        {SOURCE, "05 01 0000 00000004 0000000000000000 00100000", "ACK says finished at 0"},
        {TARGET, "05 01 0000 00000004 0000000000000000 00100000", "ACK says finished at 0"},
        {SOURCE, "06 00 0000 00000000 0000000000000001", "FIN at 1, received are 0"},
        {SOURCE, "08 00 0000 00000000 0000000000000001", "PONG 1 without its PING"},
        {SOURCE, "09 01 0000 00000002 0000000000000000 0001", "RESET answers none"},
        {FINISHED_IN, "04 00 0000 00000001 0000000000000004", "DATA up to 5 behind FIN at 4"},
        {FINISHED_IN, "04 00 0000 00000002 0000000000000003", "DATA up to 5 behind FIN at 4"},
        {FINISHED_IN, "06 00 0000 00000000 0000000000000003", "FIN at 3, received are 4"},
        {FINISHED_IN, "06 00 0000 00000000 0000000000000005", "FIN at 5, received are 4"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct protocol *p = cases[i].start == DIALLED  ? dialled_source()
                             : cases[i].start == TARGET ? open_target()
                                                        : open_source();

        if (cases[i].start == FINISHED_IN) {
            feed_data(p, 0, 4, T0);
            feed_frame(p, FRAME_FIN, 0, 4, T0);
        }
        feed_hex(p, cases[i].hex, T0);
        if (!cases[i].text) {
            assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
        } else {
            assert_string_equal(protocol_outcome(p)->text, cases[i].text);
            assert_closed(p, PROTOCOL_RESET, FRAME_RESET_PROTOCOL);
            assert_false(protocol_outcome(p)->by_peer);
            assert_int_equal(protocol_hangup(p), PROTOCOL_FLUSH);
            assert_true(protocol_unix_over(p));
            feed_data(p, 0, 9000, T0); /* whatever still comes is read and forgotten */
            flush(p, T0);
            assert_int_equal(sent.count[FRAME_RESET], 1);
            assert_int_equal(sent.n, FRAME_HEADER + 2 + strlen(cases[i].text));
            assert_memory_equal(sent.note[FRAME_RESET] + 2, cases[i].text, strlen(cases[i].text));
            assert_int_equal(protocol_deadline(p), PROTOCOL_NEVER);
        }
        protocol_free(p);
    }
}

static void window_is_the_limit(void **state)
{
    struct protocol *p = open_target();
    struct protocol_config c = example_config();
    struct protocol_stats st;
    void *where;

    (void)state;
    /* Received, not delivered: the window is used up, not moved. */
    for (uint64_t at = 0; at < 1 << 20; at += FRAME_DATA_MAX) {
        feed_data(p, at, FRAME_DATA_MAX, T0);
    }
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    protocol_stats(p, &st);
    assert_true(st.memory <= protocol_memory_max(p));
    feed_data(p, 1 << 20, 1, T0);
    assert_string_equal(protocol_outcome(p)->text,
                        "DATA up to 1048577, the window ends at 1048576");
    protocol_free(p);
    /* A FIN needs no window. */
    p = open_target();
    for (uint64_t at = 0; at < 1 << 20; at += FRAME_DATA_MAX) {
        feed_data(p, at, FRAME_DATA_MAX, T0);
    }
    feed_frame(p, FRAME_FIN, 0, 1 << 20, T0);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    assert_int_equal(app_reads(p, T0), 1 << 20);
    flush(p, T0);
    assert_int_equal(sent.last[FRAME_ACK].offset, (1 << 20) + 1);
    protocol_free(p);
    /* Nothing is read from the unix socket that could not be sent at once. */
    p = open_source();
    app_writes(p, 1 << 20);
    assert_int_equal(protocol_read_space(p, &where), 0);
    feed_ack(p, 0, 0, (1 << 20) + 5, T0);
    assert_int_equal(protocol_read_space(p, &where), 5);
    protocol_free(p);
    /* And not more than this end keeps for replay. */
    c.send_max = 3000;
    c.block_size = 4096;
    p = protocol_new_source(&c, T0);
    protocol_connected(p, T0);
    flush(p, T0);
    feed_hello_ok(p, 0, instance_a, 0, 1 << 20, T0);
    app_writes(p, 3000);
    assert_int_equal(protocol_read_space(p, &where), 0);
    flush(p, T0);
    feed_ack(p, 0, 1000, 1 << 20, T0);
    assert_int_equal(protocol_read_space(p, &where), 1000);
    protocol_free(p);
    /* A lower ceiling takes nothing back. */
    p = open_target();
    protocol_set_window_max(p, 1000);
    feed_data(p, 0, 500, T0);
    app_reads(p, T0);
    flush(p, T0 + S);
    assert_int_equal(frame_u32(sent.note[FRAME_ACK]), (1 << 20) - 500);
    protocol_free(p);
}

static void acknowledgements(void **state)
{
    struct protocol *p = open_target();
    int64_t t = T0 + 100 * MS; /* before a PING is due again */

    (void)state;
    /* Less than 512 KiB: 20 ms after delivery. */
    feed_data(p, 0, 1000, T0);
    protocol_tick(p, t);
    flush(p, t);
    assert_int_equal(sent.n, 0); /* received is not delivered */
    app_writes(p, 1);
    flush(p, t);
    assert_int_equal(sent.count[FRAME_DATA], 1);
    assert_int_equal(sent.count[FRAME_ACK], 0);
    assert_int_equal(app_reads(p, t), 1000);
    flush(p, t);
    assert_int_equal(sent.n, 0);
    assert_int_equal(protocol_deadline(p), t + PROTOCOL_ACK_DELAY);
    protocol_tick(p, t + PROTOCOL_ACK_DELAY);
    flush(p, t + PROTOCOL_ACK_DELAY);
    assert_hex(sent.bytes, sent.n, "05 00 0000 00000004 00000000000003e8 00100000");
    flush(p, t + PROTOCOL_ACK_DELAY);
    assert_int_equal(sent.n, 0);
    /* 512 KiB: at once. */
    feed_data(p, 1000, FRAME_DATA_MAX, t);
    app_reads(p, t);
    flush(p, t);
    assert_int_equal(sent.count[FRAME_ACK], 0);
    feed_data(p, 1000 + FRAME_DATA_MAX, FRAME_DATA_MAX, t);
    app_reads(p, t);
    flush(p, t);
    assert_int_equal(sent.count[FRAME_ACK], 1);
    assert_int_equal(sent.last[FRAME_ACK].offset, 1000 + PROTOCOL_ACK_BYTES);
    /* Together with whatever leaves. */
    feed_data(p, 1000 + PROTOCOL_ACK_BYTES, 10, t);
    app_reads(p, t);
    app_writes(p, 5);
    flush(p, t);
    assert_hex(sent.bytes, sent.n,
               "05 00 0000 00000004 00000000000803f2 00100000"
               "04 00 0000 00000005 0000000000000001 0102030405");
    /* Duplicates are dropped, but answered. */
    feed_data(p, 500, 600, t);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    assert_int_equal(app_reads(p, t), 0);
    protocol_tick(p, t + PROTOCOL_ACK_DELAY);
    flush(p, t + PROTOCOL_ACK_DELAY);
    assert_int_equal(sent.last[FRAME_ACK].offset, 1010 + PROTOCOL_ACK_BYTES);
    /* Half old, half new. */
    feed_data(p, 1000 + PROTOCOL_ACK_BYTES, 20, t);
    struct iovec vec[2];

    assert_int_equal(protocol_write_vec(p, vec, 2), 1);
    assert_int_equal(vec[0].iov_len, 10);
    assert_int_equal(((uint8_t *)vec[0].iov_base)[0], (uint8_t)(1010 + PROTOCOL_ACK_BYTES));
    protocol_free(p);
}

static void payload_is_not_copied(void **state)
{
    struct protocol *p = open_source();
    struct iovec parts[2];
    void *where;

    (void)state;
    /* From the unix socket to the connection. */
    assert_int_equal(protocol_read_space(p, &where), FRAME_DATA_MAX);
    assert_int_equal((uintptr_t)where % 64, 0);
    memset(where, 'x', 100000);
    protocol_unix_read(p, 100000);
    assert_int_equal(protocol_output(p, T0, parts), 2);
    assert_int_equal(parts[0].iov_len, FRAME_HEADER);
    assert_ptr_equal(parts[1].iov_base, where);
    assert_int_equal(parts[1].iov_len, 100000);
    protocol_sent(p, 16 + 40000);
    /* An acknowledgement of what is not sent completely leaves it where it is. */
    assert_int_equal(protocol_output(p, T0, parts), 1);
    assert_ptr_equal(parts[0].iov_base, (uint8_t *)where + 40000);
    assert_int_equal(parts[0].iov_len, 60000);
    /* The other way. */
    uint8_t head[FRAME_HEADER];
    struct iovec vec[2];

    feed_data(p, 0, 3, T0); /* which leaves an odd place behind */
    feed(p, head, frame_put(head, FRAME_DATA, 0, 70000, 3), T0);
    assert_int_equal(protocol_recv_space(p, &where), 70000);
    assert_int_equal((uintptr_t)where % 64, 0);
    memset(where, 'y', 70000);
    protocol_received(p, 30000, T0);
    assert_int_equal(protocol_write_vec(p, vec, 2), 2); /* without waiting for the rest */
    assert_ptr_equal(vec[1].iov_base, where);
    assert_int_equal(vec[1].iov_len, 30000);
    protocol_free(p);
}

static void finishing(void **state)
{
    struct protocol *s = open_source(), *t = open_target();

    (void)state;
    /* Source closes its half; the other stays open. */
    app_writes(s, 3);
    protocol_unix_eof(s, T0);
    flush(s, T0);
    assert_hex(sent.bytes, sent.n,
               "04 00 0000 00000003 0000000000000000 000102"
               "06 00 0000 00000000 0000000000000003");
    feed(t, sent.bytes, sent.n, T0);
    assert_false(protocol_shutdown_due(t)); /* bytes first */
    assert_int_equal(app_reads(t, T0), 3);
    assert_false(protocol_shutdown_due(t));
    assert_false(protocol_unix_over(t));
    flush(t, T0);
    assert_hex(sent.bytes, sent.n, "05 00 0000 00000004 0000000000000004 00100000");
    feed(s, sent.bytes, sent.n, T0);
    assert_int_equal(protocol_state(s), PROTOCOL_OPEN);
    app_writes(t, 2);
    protocol_unix_eof(t, T0);
    assert_true(protocol_unix_over(t));
    assert_int_equal(protocol_state(t), PROTOCOL_OPEN);
    flush(t, T0);
    feed(s, sent.bytes, sent.n, T0);
    assert_int_equal(app_reads(s, T0), 2);
    /* The source knows that all is delivered, but not that the target knows. */
    assert_int_equal(protocol_state(s), PROTOCOL_LINGER);
    assert_true(protocol_unix_over(s));
    flush(s, T0);
    feed(t, sent.bytes, sent.n, T0);
    assert_closed(t, PROTOCOL_FINISHED, 0);
    flush(t, T0);
    assert_hex(sent.bytes, sent.n, "05 01 0000 00000004 0000000000000004 00100000");
    feed(s, sent.bytes, sent.n, T0);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    assert_int_equal(protocol_hangup(s), PROTOCOL_FLUSH);
    protocol_free(s);
    protocol_free(t);
}

/* Everything over but the last word of the target. */
static struct protocol *lingering_source(void)
{
    struct protocol *s = open_source();

    protocol_unix_eof(s, T0);
    flush(s, T0);
    feed_frame(s, FRAME_FIN, 0, 0, T0);
    assert_int_equal(app_reads(s, T0), 0);
    feed_ack(s, 0, 1, 1 << 20, T0);
    assert_int_equal(protocol_state(s), PROTOCOL_LINGER);
    flush(s, T0);
    assert_int_equal(sent.last[FRAME_ACK].offset, 1);
    return s;
}

static void last_words_are_not_lost(void **state)
{
    struct protocol *s = lingering_source(), *t;
    struct hello_tombstone tomb;

    (void)state;
    /* The target's last ACK is lost: its tombstone answers. */
    redial(s, T0 + S);
    assert_int_equal(sent.last[FRAME_HELLO].flags, FRAME_RESUME);
    assert_int_equal(sent.last[FRAME_HELLO].offset, 1);
    feed_hello_ok(s, FRAME_FINISHED, instance_a, 1, 0, T0 + S);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    protocol_free(s);
    /* Or it has none any more, or is another: all was delivered, as the source knows. */
    s = lingering_source();
    redial(s, T0 + S);
    feed_note(s, FRAME_REFUSED, 0, FRAME_REFUSED_UNKNOWN, "", T0 + S);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    protocol_free(s);
    s = lingering_source();
    redial(s, T0 + S);
    feed_hello_ok(s, 0, instance_b, 0, 0, T0 + S);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    protocol_free(s);
    /* Or it is never heard of again. */
    s = lingering_source();
    protocol_disconnected(s, T0 + S, "gone");
    assert_int_equal(protocol_state(s), PROTOCOL_LINGER);
    protocol_tick(s, T0 + PROTOCOL_RESUME_MAX);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    protocol_free(s);
    /* The source's last ACK is lost: HELLO says the same, HELLO-OK says it was heard. */
    t = open_target();
    protocol_unix_eof(t, T0);
    flush(t, T0);
    feed_frame(t, FRAME_FIN, 0, 0, T0);
    app_reads(t, T0);
    flush(t, T0);
    protocol_disconnected(t, T0, "cut");
    hello_again(t, 2, 1, 1 << 20, T0 + S);
    assert_closed(t, PROTOCOL_FINISHED, 0);
    flush(t, T0 + S);
    assert_int_equal(sent.count[FRAME_HELLO_OK], 1);
    assert_int_equal(sent.last[FRAME_HELLO_OK].flags, FRAME_FINISHED);
    assert_int_equal(sent.last[FRAME_HELLO_OK].offset, 1);
    protocol_tombstone(t, &tomb);
    assert_true(tomb.finished);
    assert_int_equal(tomb.delivered, 1);
    assert_int_equal(tomb.sent, 1);
    assert_int_equal(tomb.epoch, 2);
    protocol_free(t);
    /* The source has delivered all but heard of nothing: finished by the tombstone. */
    s = open_source();
    app_writes(s, 10);
    protocol_unix_eof(s, T0);
    flush(s, T0);
    feed_frame(s, FRAME_FIN, 0, 0, T0);
    app_reads(s, T0);
    redial(s, T0 + S);
    feed_hello_ok(s, FRAME_FINISHED, instance_a, 11, 0, T0 + S);
    assert_closed(s, PROTOCOL_FINISHED, 0);
    protocol_free(s);
}

static void resuming(void **state)
{
    struct protocol *s = open_source(), *t;
    struct protocol_stats st;

    (void)state;
    app_writes(s, 10000);
    flush(s, T0);
    feed_ack(s, 0, 1000, 1 << 20, T0);
    feed_data(s, 0, 700, T0);
    protocol_disconnected(s, T0 + S, "cut");
    assert_int_equal(protocol_state(s), PROTOCOL_AWAY);
    /* Away: both directions of the unix socket go on as far as the windows reach. */
    app_writes(s, 50);
    assert_int_equal(app_reads(s, T0 + S), 700);
    protocol_connected(s, T0 + 2 * S);
    flush(s, T0 + 2 * S);
    assert_int_equal(sent.count[FRAME_HELLO], 1);
    assert_int_equal(sent.n, FRAME_HEADER + FRAME_HELLO_FIXED + 5);
    assert_int_equal(sent.last[FRAME_HELLO].offset, 700);
    assert_int_equal(frame_u64(sent.note[FRAME_HELLO] + 8), 2); /* epoch */
    feed_hello_ok(s, 0, instance_a, 4000, 1 << 20, T0 + 2 * S);
    flush(s, T0 + 2 * S);
    assert_int_equal(sent.last[FRAME_DATA].offset + sent.last[FRAME_DATA].length, 10050);
    protocol_stats(s, &st);
    assert_int_equal(st.resumes, 1);
    assert_int_equal(st.acked, 4000);
    assert_int_equal(st.replayed, 6000);
    /* The target says something else than before. */
    redial(s, T0 + 3 * S);
    feed_hello_ok(s, 0, instance_a, 3999, 1 << 20, T0 + 3 * S);
    assert_closed(s, PROTOCOL_RESET, FRAME_RESET_PROTOCOL);
    protocol_free(s);
    /* Another instance. */
    s = open_source();
    redial(s, T0 + S);
    feed_hello_ok(s, 0, instance_b, 0, 1 << 20, T0 + S);
    assert_closed(s, PROTOCOL_STATE_LOST, FRAME_RESET_STATE);
    flush(s, T0 + S);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    protocol_free(s);
    /* An ACK overtakes the replay: what it covers is skipped. */
    t = open_target();
    app_writes(t, 300000);
    flush(t, T0);
    protocol_disconnected(t, T0, "cut");
    hello_again(t, 2, 0, 1 << 20, T0 + S);
    struct iovec parts[2];

    assert_int_equal(protocol_output(t, T0 + S, parts), 2);
    assert_int_equal(parts[1].iov_len, FRAME_DATA_MAX);
    const uint8_t *payload = parts[1].iov_base;

    protocol_sent(t, parts[0].iov_len + 100);
    feed_ack(t, 0, 300000, 1 << 20, T0 + S);
    app_writes(t, 900001); /* wherever there is room: not over what is being sent */
    assert_int_equal(protocol_output(t, T0 + S, parts), 1);
    assert_ptr_equal(parts[0].iov_base, payload + 100);
    for (size_t i = 0; i < FRAME_DATA_MAX; i++) {
        assert_int_equal(payload[i], (uint8_t)i);
    }
    protocol_sent(t, parts[0].iov_len);
    flush(t, T0 + S);
    assert_int_equal(sent.count[FRAME_DATA], 4);
    assert_int_equal(sent.last[FRAME_DATA].offset + sent.last[FRAME_DATA].length, 1200001);
    protocol_free(t);
}

static void attaching(void **state)
{
    static const struct {
        const char *name;
        bool fresh;
        uint64_t epoch, delivered;
        uint32_t window;
        int code;
    } cases[] = {
        {"good", false, 2, 600, 1 << 20, 0},
        {"all", false, 2, 1000, 1 << 20, 0},
        {"much newer", false, 2000, 500, 1 << 20, 0},
        {"same epoch", false, 1, 600, 1 << 20, FRAME_REFUSED_STALE},
        {"new", true, 2, 0, 1 << 20, FRAME_REFUSED_KNOWN},
        {"below what was acknowledged", false, 2, 499, 1 << 20, FRAME_REFUSED_OFFSET},
        {"above what was sent", false, 2, 1001, 1 << 20, FRAME_REFUSED_OFFSET},
        {"window taken back", false, 2, 600, (1 << 20) - 101, FRAME_REFUSED_OFFSET},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct protocol *t = open_target();
        struct hello h = example_hello();
        struct hello_refusal refusal = {0};

        app_writes(t, 1000);
        flush(t, T0);
        feed_ack(t, 0, 500, 1 << 20, T0);
        h.resume = !cases[i].fresh;
        h.epoch = cases[i].epoch;
        h.delivered = cases[i].delivered;
        h.window = cases[i].window;
        int rc = protocol_attach(t, &h, T0, &refusal);

        if ((rc == 0) != (cases[i].code == 0) || (int)refusal.code != cases[i].code) {
            fail_msg("%s: %d, refusal %d", cases[i].name, rc, (int)refusal.code);
        }
        assert_int_equal(protocol_state(t), PROTOCOL_OPEN);
        if (rc == 0) {
            /* The newest connection has the stream; the old one did not have to be gone. */
            flush(t, T0);
            assert_int_equal(sent.count[FRAME_HELLO_OK], 1);
            assert_int_equal(sent.count[FRAME_DATA], cases[i].delivered < 1000);
            if (sent.count[FRAME_DATA]) {
                assert_int_equal(sent.last[FRAME_DATA].offset, cases[i].delivered);
            }
        } else {
            /* The stream that is there goes on as if nothing had been. */
            app_writes(t, 1);
            flush(t, T0);
            assert_int_equal(sent.count[FRAME_HELLO_OK], 0);
            assert_int_equal(sent.last[FRAME_DATA].offset, 1000);
        }
        protocol_free(t);
    }
}

/* What the source does about each refusal. */
static void refusals(void **state)
{
    enum { NEW, UNSURE, AWAY, BROKEN };
    enum { AGAIN_NEW = -1, AGAIN_RESUME = -2 };
    static const struct {
        int start;
        enum frame_refusal code;
        int end; /* enum protocol_end or AGAIN */
    } cases[] = {
        {NEW, FRAME_REFUSED_VERSION, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_MALFORMED, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_DENIED, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_MOVE, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_CHANNEL, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_KNOWN, AGAIN_RESUME},
        {NEW, FRAME_REFUSED_UNKNOWN, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_STALE, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_UNIX, PROTOCOL_REFUSED},
        {NEW, FRAME_REFUSED_BUSY, AGAIN_NEW},
        {NEW, 999, PROTOCOL_REFUSED},
        {UNSURE, FRAME_REFUSED_UNKNOWN, AGAIN_NEW},
        {UNSURE, FRAME_REFUSED_KNOWN, PROTOCOL_REFUSED},
        {UNSURE, FRAME_REFUSED_BUSY, AGAIN_RESUME},
        {UNSURE, FRAME_REFUSED_UNIX, PROTOCOL_REFUSED},
        {UNSURE, FRAME_REFUSED_ENDED, PROTOCOL_REFUSED},
        {UNSURE, FRAME_REFUSED_EXPIRED, PROTOCOL_EXPIRED},
        {AWAY, FRAME_REFUSED_UNKNOWN, PROTOCOL_STATE_LOST},
        {AWAY, FRAME_REFUSED_EXPIRED, PROTOCOL_EXPIRED},
        {AWAY, FRAME_REFUSED_ENDED, PROTOCOL_REFUSED},
        {AWAY, FRAME_REFUSED_OFFSET, PROTOCOL_REFUSED},
        {AWAY, FRAME_REFUSED_MOVE, PROTOCOL_REFUSED},
        {AWAY, FRAME_REFUSED_BUSY, AGAIN_RESUME},
        {BROKEN, FRAME_REFUSED_UNKNOWN, PROTOCOL_RESET},
        {BROKEN, FRAME_REFUSED_ENDED, PROTOCOL_RESET},
        {BROKEN, FRAME_REFUSED_BUSY, AGAIN_RESUME},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct protocol *p = cases[i].start >= AWAY ? open_source() : dialled_source();

        if (cases[i].start == BROKEN) {
            protocol_unix_failed(p, "broken", T0);
        }
        if (cases[i].start != NEW) {
            redial(p, T0 + S);
            assert_int_equal(sent.last[FRAME_HELLO].flags, FRAME_RESUME);
        }
        feed_note(p, FRAME_REFUSED, 0, (uint16_t)cases[i].code, "because", T0 + S);
        assert_int_equal(protocol_hangup(p), PROTOCOL_DROP);
        if (cases[i].end >= 0) {
            assert_closed(p, (enum protocol_end)cases[i].end,
                          cases[i].start == BROKEN ? FRAME_RESET_UNIX : cases[i].code);
            assert_string_equal(protocol_outcome(p)->text,
                                cases[i].start == BROKEN ? "broken" : "because");
            assert_int_equal(protocol_dial_at(p), PROTOCOL_NEVER);
        } else {
            redial(p, T0 + 2 * S);
            assert_int_equal(sent.last[FRAME_HELLO].flags,
                             cases[i].end == AGAIN_NEW ? FRAME_NEW : FRAME_RESUME);
        }
        protocol_free(p);
    }
}

static void target_opens_late(void **state)
{
    struct protocol_config c = example_config();
    struct hello h = example_hello();
    struct hello_tombstone tomb;
    struct protocol *t = protocol_new_target(&c, &h, T0);

    (void)state;
    /* The first connection is lost while the unix socket is dialled; the second is answered. */
    protocol_disconnected(t, T0 + S, "cut");
    hello_again(t, 2, 0, 1 << 20, T0 + 2 * S);
    flush(t, T0 + 2 * S);
    assert_int_equal(sent.n, 0);
    protocol_unix_connected(t, T0 + 3 * S);
    flush(t, T0 + 3 * S);
    assert_int_equal(sent.count[FRAME_HELLO_OK], 1);
    protocol_free(t);
    /* Nobody is there when it is connected. */
    t = protocol_new_target(&c, &h, T0);
    protocol_disconnected(t, T0 + S, "cut");
    protocol_unix_connected(t, T0 + 3 * S);
    assert_int_equal(protocol_state(t), PROTOCOL_AWAY);
    assert_int_equal(protocol_deadline(t), T0 + S + PROTOCOL_RESUME_MAX + PROTOCOL_GRACE);
    protocol_free(t);
    /* It cannot be connected. */
    t = protocol_new_target(&c, &h, T0);
    protocol_unix_refused(t, "connect: no such file", T0);
    assert_closed(t, PROTOCOL_REFUSED, FRAME_REFUSED_UNIX);
    flush(t, T0);
    assert_int_equal(sent.count[FRAME_REFUSED], 1);
    assert_int_equal(frame_u16(sent.note[FRAME_REFUSED]), FRAME_REFUSED_UNIX);
    protocol_tombstone(t, &tomb);
    assert_int_equal(tomb.refusal.code, FRAME_REFUSED_UNIX);
    assert_string_equal(tomb.refusal.text, "connect: no such file");
    protocol_free(t);
    /* The source speaks before it was answered. */
    t = protocol_new_target(&c, &h, T0);
    feed_data(t, 0, 1, T0);
    assert_closed(t, PROTOCOL_RESET, FRAME_RESET_PROTOCOL);
    flush(t, T0);
    assert_int_equal(sent.count[FRAME_REFUSED], 1);
    protocol_free(t);
    /* Cancelled while it is dialled. */
    t = protocol_new_target(&c, &h, T0);
    protocol_cancel(t, "no longer wanted", T0);
    flush(t, T0);
    assert_int_equal(frame_u16(sent.note[FRAME_REFUSED]), FRAME_REFUSED_ENDED);
    protocol_free(t);
}

static void silence(void **state)
{
    struct protocol *p = open_source();

    (void)state;
    assert_int_equal(protocol_deadline(p), T0 + MS + PROTOCOL_PING);
    protocol_tick(p, T0 + MS + PROTOCOL_PING - 1);
    flush(p, T0 + PROTOCOL_PING);
    assert_int_equal(sent.n, 0);
    protocol_tick(p, T0 + MS + PROTOCOL_PING);
    flush(p, T0 + MS + PROTOCOL_PING);
    assert_hex(sent.bytes, sent.n, "07 00 0000 00000000 0000000000000002");
    assert_int_equal(protocol_deadline(p), T0 + MS + PROTOCOL_DEAD);
    /* Any byte is a sign of life. */
    feed_hex(p, "07", T0 + 4 * S);
    assert_int_equal(protocol_deadline(p), T0 + 4 * S + PROTOCOL_DEAD);
    feed_hex(p, "00 0000 00000000 000000000000abcd", T0 + 5 * S);
    flush(p, T0 + 5 * S);
    assert_hex(sent.bytes, sent.n, "08 00 0000 00000000 000000000000abcd");
    /* Many PINGs, one PONG: the last. */
    feed_frame(p, FRAME_PING, 0, 1, T0 + 5 * S);
    feed_frame(p, FRAME_PING, 0, 2, T0 + 5 * S);
    flush(p, T0 + 5 * S);
    assert_hex(sent.bytes, sent.n, "08 00 0000 00000000 0000000000000002");
    protocol_tick(p, T0 + 13 * S - 1);
    assert_int_equal(protocol_hangup(p), PROTOCOL_KEEP);
    protocol_tick(p, T0 + 13 * S);
    assert_int_equal(protocol_hangup(p), PROTOCOL_DROP);
    protocol_disconnected(p, T0 + 13 * S, NULL);
    assert_int_equal(protocol_state(p), PROTOCOL_AWAY);
    /* No answer to HELLO. */
    protocol_connected(p, T0 + 14 * S);
    flush(p, T0 + 14 * S);
    protocol_tick(p, T0 + 24 * S - 1);
    assert_int_equal(protocol_hangup(p), PROTOCOL_KEEP);
    protocol_tick(p, T0 + 24 * S);
    assert_int_equal(protocol_hangup(p), PROTOCOL_DROP);
    assert_int_equal(protocol_state(p), PROTOCOL_AWAY);
    protocol_free(p);
}

static void waiting_ends(void **state)
{
    struct protocol_config c = example_config();
    struct protocol *p = protocol_new_source(&c, T0);
    struct hello_tombstone tomb;

    (void)state;
    /* Never opened; the pauses between dials grow. */
    int64_t pauses[] = {50, 100, 200, 400, 800, 1600, 2000, 2000};

    for (size_t i = 0; i < COUNT_OF(pauses); i++) {
        protocol_disconnected(p, T0, "connection refused");
        assert_int_equal(protocol_dial_at(p), T0 + pauses[i] * MS);
    }
    protocol_tick(p, T0 + 30 * S - 1);
    assert_int_equal(protocol_state(p), PROTOCOL_OPENING);
    protocol_tick(p, T0 + 30 * S);
    assert_closed(p, PROTOCOL_UNREACHABLE, 0);
    assert_string_equal(protocol_outcome(p)->text, "not opened in time: connection refused");
    protocol_free(p);
    /* Away for too long: the source first, the target ten seconds later. */
    p = open_source();
    protocol_disconnected(p, T0 + S, "no route");
    protocol_tick(p, T0 + S + PROTOCOL_RESUME_MAX - 1);
    assert_int_equal(protocol_state(p), PROTOCOL_AWAY);
    protocol_tick(p, T0 + S + PROTOCOL_RESUME_MAX);
    assert_closed(p, PROTOCOL_EXPIRED, 0);
    assert_string_equal(protocol_outcome(p)->text, "connection away for 240 s: no route");
    assert_true(protocol_unix_over(p));
    protocol_connected(p, T0 + 300 * S); /* a dial that ends too late */
    flush(p, T0 + 300 * S);
    assert_int_equal(sent.n, 0);
    protocol_free(p);
    p = open_target();
    protocol_disconnected(p, T0 + S, "cut");
    protocol_tick(p, T0 + S + PROTOCOL_RESUME_MAX + PROTOCOL_GRACE - 1);
    assert_int_equal(protocol_state(p), PROTOCOL_AWAY);
    protocol_tick(p, T0 + S + PROTOCOL_RESUME_MAX + PROTOCOL_GRACE);
    assert_closed(p, PROTOCOL_EXPIRED, 0);
    protocol_tombstone(p, &tomb);
    assert_false(tomb.finished);
    assert_int_equal(tomb.refusal.code, FRAME_REFUSED_EXPIRED);
    protocol_free(p);
    /* Attempts that fail do not make the wait longer. */
    p = open_source();
    protocol_disconnected(p, T0 + S, "cut");
    protocol_connected(p, T0 + 200 * S);
    protocol_disconnected(p, T0 + 201 * S, "cut again");
    protocol_tick(p, T0 + S + PROTOCOL_RESUME_MAX);
    assert_closed(p, PROTOCOL_EXPIRED, 0);
    protocol_free(p);
    /* Held: never. */
    p = open_target();
    protocol_set_resume_window(p, PROTOCOL_HOLD);
    protocol_disconnected(p, T0 + S, "cut");
    protocol_tick(p, T0 + 100000 * S);
    assert_int_equal(protocol_state(p), PROTOCOL_AWAY);
    assert_int_equal(protocol_deadline(p), PROTOCOL_NEVER);
    protocol_free(p);
}

static void resets_sent(void **state)
{
    struct protocol *p = open_source();
    struct hello_refusal refusal;
    struct hello h = example_hello();

    (void)state;
    /* Bytes, FIN, RESET; then the echo. */
    app_writes(p, 2);
    protocol_unix_failed(p, "recv: reset", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    assert_true(protocol_unix_over(p));
    flush(p, T0);
    assert_hex(sent.bytes, sent.n,
               "04 00 0000 00000002 0000000000000000 0001"
               "09 00 0000 0000000d 0000000000000000 0002 726563763a207265736574");
    feed_data(p, 7777, 9, T0); /* of no interest any more, right or wrong */
    feed_frame(p, FRAME_FIN, 0, 12345, T0);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    feed_note(p, FRAME_RESET, FRAME_ECHO, FRAME_RESET_UNIX, "recv: reset", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    assert_false(protocol_outcome(p)->by_peer);
    flush(p, T0);
    assert_int_equal(sent.n, 0);
    protocol_free(p);
    /* The RESET is lost: it is said again, after what was not delivered. */
    p = open_source();
    app_writes(p, 2);
    protocol_unix_failed(p, "x", T0);
    flush(p, T0);
    redial(p, T0 + S);
    feed_hello_ok(p, 0, instance_a, 1, 1 << 20, T0 + S);
    flush(p, T0 + S);
    assert_int_equal(sent.last[FRAME_DATA].offset, 1);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    protocol_free(p);
    /* Both at once. */
    p = open_source();
    protocol_unix_failed(p, "x", T0);
    feed_note(p, FRAME_RESET, 0, FRAME_RESET_CANCELLED, "y", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    flush(p, T0);
    assert_int_equal(sent.last[FRAME_RESET].flags, FRAME_ECHO);
    protocol_free(p);
    /* Cancelled: at once. */
    p = open_source();
    app_writes(p, 2);
    protocol_cancel(p, "drained", T0);
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_DATA], 0);
    assert_int_equal(frame_u16(sent.note[FRAME_RESET]), FRAME_RESET_CANCELLED);
    protocol_free(p);
    /* Nobody there to be told. */
    p = protocol_new_source(&(struct protocol_config){.window_max = 4096, .block_size = 4096}, T0);
    protocol_unix_failed(p, "application left", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    protocol_free(p);
    /* A HELLO is under way: whoever took it must be told, but nobody else. */
    p = dialled_source();
    protocol_unix_failed(p, "application left", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    feed_note(p, FRAME_REFUSED, 0, FRAME_REFUSED_BUSY, "later", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    protocol_free(p);
    p = dialled_source();
    protocol_unix_failed(p, "application left", T0);
    redial(p, T0 + S);
    assert_int_equal(sent.last[FRAME_HELLO].flags, FRAME_RESUME);
    feed_hello_ok(p, 0, instance_a, 0, 1 << 20, T0 + S);
    flush(p, T0 + S);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    protocol_free(p);
    /* Of a target that is away: told to whoever comes, forgotten after the window. */
    p = open_target();
    app_writes(p, 5);
    protocol_disconnected(p, T0, "cut");
    protocol_unix_failed(p, "qemu left", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    hello_again(p, 2, 0, 1 << 20, T0 + S);
    flush(p, T0 + S);
    assert_int_equal(sent.count[FRAME_HELLO_OK], 1);
    assert_int_equal(sent.last[FRAME_DATA].length, 5);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    protocol_tick(p, T0 + PROTOCOL_RESUME_MAX + PROTOCOL_GRACE);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    h.resume = true;
    h.epoch = 3;
    assert_true(protocol_attach(p, &h, T0, &refusal) < 0);
    assert_int_equal(refusal.code, FRAME_REFUSED_BUSY);
    protocol_free(p);
}

static void resets_received(void **state)
{
    struct protocol *p = open_target();
    struct hello h = example_hello();
    struct hello_refusal refusal;
    struct hello_tombstone tomb;

    (void)state;
    /* First what came before it. */
    feed_data(p, 0, 100, T0);
    feed_frame(p, FRAME_FIN, 0, 100, T0);
    feed_note(p, FRAME_RESET, 0, FRAME_RESET_UNIX, "left\n", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_DRAINING);
    assert_false(protocol_unix_over(p));
    flush(p, T0);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    assert_int_equal(sent.last[FRAME_RESET].flags, FRAME_ECHO);
    h.resume = true;
    h.epoch = 2;
    assert_true(protocol_attach(p, &h, T0, &refusal) < 0);
    assert_int_equal(refusal.code, FRAME_REFUSED_ENDED);
    assert_int_equal(app_reads(p, T0), 100);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_UNIX);
    assert_true(protocol_outcome(p)->by_peer);
    assert_string_equal(protocol_outcome(p)->text, "left?");
    protocol_tombstone(p, &tomb);
    assert_int_equal(tomb.refusal.code, FRAME_REFUSED_ENDED);
    protocol_free(p);
    /* Nothing to deliver. */
    p = open_source();
    feed_note(p, FRAME_RESET, 0, FRAME_RESET_CANCELLED, "", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_CANCELLED);
    flush(p, T0);
    assert_int_equal(sent.last[FRAME_RESET].flags, FRAME_ECHO);
    protocol_free(p);
    /* A unix side that takes nothing cannot hold the stream for ever. */
    p = open_source();
    feed_data(p, 0, 100, T0);
    feed_note(p, FRAME_RESET, 0, FRAME_RESET_CANCELLED, "", T0);
    assert_int_equal(protocol_deadline(p), T0 + PROTOCOL_DRAIN);
    protocol_disconnected(p, T0, "closed");
    assert_int_equal(protocol_dial_at(p), PROTOCOL_NEVER);
    protocol_tick(p, T0 + PROTOCOL_DRAIN);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_CANCELLED);
    protocol_free(p);
    /* Nor one that breaks. */
    p = open_source();
    feed_data(p, 0, 100, T0);
    feed_note(p, FRAME_RESET, 0, FRAME_RESET_CANCELLED, "", T0);
    protocol_unix_write_failed(p, "epipe", T0);
    assert_closed(p, PROTOCOL_RESET, FRAME_RESET_CANCELLED);
    protocol_free(p);
}

/* An application wrote its last words and left without reading ours. */
static void sink_leaves(void **state)
{
    struct protocol *p = open_target();

    (void)state;
    feed_data(p, 0, 100, T0);
    protocol_unix_write_failed(p, "send: broken pipe", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN);
    struct iovec vec[1];

    assert_int_equal(protocol_write_vec(p, vec, 1), 0);
    app_writes(p, 4);
    protocol_unix_eof(p, T0 + S);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    flush(p, T0 + S);
    assert_int_equal(sent.count[FRAME_DATA], 1);
    assert_int_equal(sent.count[FRAME_FIN], 1);
    assert_int_equal(sent.count[FRAME_RESET], 1);
    assert_int_equal(sent.count[FRAME_ACK], 0); /* nothing was delivered */
    assert_int_equal(protocol_outcome(p)->code, FRAME_RESET_UNIX);
    protocol_free(p);
    /* It only stopped reading: the stream ends all the same. */
    p = open_target();
    protocol_unix_write_failed(p, "send: broken pipe", T0);
    protocol_tick(p, T0 + PROTOCOL_DRAIN);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    protocol_free(p);
    /* It had finished writing before. */
    p = open_target();
    protocol_unix_eof(p, T0);
    protocol_unix_write_failed(p, "send: broken pipe", T0);
    assert_int_equal(protocol_state(p), PROTOCOL_LINGER);
    protocol_free(p);
}

static void memory_comes_back(void **state)
{
    struct protocol *p = open_source();
    struct protocol_stats st;

    (void)state;
    protocol_stats(p, &st);
    assert_int_equal(st.memory, 0);
    app_writes(p, 500000);
    flush(p, T0);
    feed_ack(p, 0, 500000, 1 << 20, T0 + S);
    feed_data(p, 0, 100000, T0 + S);
    app_reads(p, T0 + S);
    protocol_stats(p, &st);
    assert_true(st.memory >= 600000);
    protocol_tick(p, T0 + 4 * S);
    protocol_stats(p, &st);
    assert_int_equal(st.memory, 0);
    protocol_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(notes),
        cmocka_unit_test(hello_bytes),
        cmocka_unit_test(hello_malformed),
        cmocka_unit_test(hello_decisions),
        cmocka_unit_test(tombstones_answer),
        cmocka_unit_test(segments_hold_bytes),
        cmocka_unit_test(segments_are_bounded),
        cmocka_unit_test(windows_follow_the_path),
        cmocka_unit_test(opening_bytes),
        cmocka_unit_test(violations),
        cmocka_unit_test(window_is_the_limit),
        cmocka_unit_test(acknowledgements),
        cmocka_unit_test(payload_is_not_copied),
        cmocka_unit_test(finishing),
        cmocka_unit_test(last_words_are_not_lost),
        cmocka_unit_test(resuming),
        cmocka_unit_test(attaching),
        cmocka_unit_test(refusals),
        cmocka_unit_test(target_opens_late),
        cmocka_unit_test(silence),
        cmocka_unit_test(waiting_ends),
        cmocka_unit_test(resets_sent),
        cmocka_unit_test(resets_received),
        cmocka_unit_test(sink_leaves),
        cmocka_unit_test(memory_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
