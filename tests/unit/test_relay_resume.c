/* Stream protocol 1 in tables: connections that are lost, come late, stay silent or are refused. */
#include "protocol_case.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resuming), cmocka_unit_test(attaching),
        cmocka_unit_test(refusals), cmocka_unit_test(target_opens_late),
        cmocka_unit_test(silence),  cmocka_unit_test(waiting_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
