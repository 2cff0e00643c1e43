/* Frames of stream protocol 1 in tables: headers, notes, HELLO, and what is decided about it. */
#include "protocol_case.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),         cmocka_unit_test(notes),
        cmocka_unit_test(hello_bytes),     cmocka_unit_test(hello_malformed),
        cmocka_unit_test(hello_decisions), cmocka_unit_test(tombstones_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
