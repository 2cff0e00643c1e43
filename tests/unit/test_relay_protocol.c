/* Stream protocol 1 in tables: an open stream, every rule of it, every way out. */
#include "protocol_case.h"

#include "relay/segments.h"

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
        cmocka_unit_test(opening_bytes),           cmocka_unit_test(violations),
        cmocka_unit_test(window_is_the_limit),     cmocka_unit_test(acknowledgements),
        cmocka_unit_test(payload_is_not_copied),   cmocka_unit_test(finishing),
        cmocka_unit_test(last_words_are_not_lost), cmocka_unit_test(resets_sent),
        cmocka_unit_test(resets_received),         cmocka_unit_test(sink_leaves),
        cmocka_unit_test(memory_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
