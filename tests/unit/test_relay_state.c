/* The state of a stream, and of a relay, as a predecessor writes it: what is kept, what is refused.
 */
#include "lib/unit.h"

#include "relay/protocol/protocol.h"
#include "relay/state/state.h"

enum { NOW_S = 1000 };
#define NOW (NOW_S * FERRY_NS_PER_S)

struct image {
    uint8_t *data;
    size_t len;
};

static struct image export_of(const struct protocol *p)
{
    struct pack k = {0};

    protocol_export(p, NOW, &k);
    struct image i = {.data = malloc(k.len), .len = k.len};
    assert_non_null(i.data);
    k = (struct pack){.data = i.data, .room = i.len};
    protocol_export(p, NOW, &k);
    assert_int_equal(k.len, i.len);
    return i;
}

static int import_of(const uint8_t *data, size_t len, int64_t now, struct protocol **ret,
                     struct ferry_error *err)
{
    struct unpack u = {.data = data, .len = len};

    *ret = NULL;
    return protocol_import(&u, now, ret, err);
}

static struct protocol *source(void)
{
    struct protocol_config c = {.channel = 49152};

    protocol_config_defaults(&c);
    memset(c.id, 7, FRAME_ID);
    strcpy(c.move, "0f1e-move");
    return protocol_new_source(&c, NOW - FERRY_NS_PER_S);
}

static void give(struct protocol *p, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        void *where;
        size_t space = protocol_recv_space(p, &where);
        size_t take = n < space ? n : space;

        memcpy(where, bytes, take);
        protocol_received(p, take, NOW);
        bytes += take;
        n -= take;
    }
}

static void swallow_output(struct protocol *p)
{
    struct iovec parts[2];
    int n;

    while ((n = protocol_output(p, NOW, parts)) > 0) {
        size_t sum = parts[0].iov_len + (n > 1 ? parts[1].iov_len : 0);

        protocol_sent(p, sum);
    }
}

static void unix_writes(struct protocol *p, const char *text)
{
    void *where;

    assert_true(protocol_read_space(p, &where) >= strlen(text));
    memcpy(where, text, strlen(text));
    protocol_unix_read(p, strlen(text));
}

/* An open source that has sent "hello" and "world", of which "hello" is acknowledged; got "abcdef"
 * and the beginning of another frame, of which "ab" is delivered. */
static struct protocol *open_source(void)
{
    static const uint8_t instance[FRAME_ID] = {9};
    struct protocol *p = source();
    uint8_t buf[256];

    protocol_dialling(p);
    protocol_connected(p, NOW);
    swallow_output(p);
    give(p, buf, frame_put_hello_ok(buf, 0, 0, instance, 1 << 20));
    unix_writes(p, "hello");
    swallow_output(p);
    unix_writes(p, "world");
    swallow_output(p);
    give(p, buf, frame_put_ack(buf, 0, 5, 1 << 20));
    size_t n = frame_put(buf, FRAME_DATA, 0, 6, 0);
    memcpy(buf + n, "abcdef", 6);
    give(p, buf, n + 6);
    n = frame_put(buf, FRAME_DATA, 0, 6, 6);
    memcpy(buf + n, "ghi", 3);
    give(p, buf, n + 3);
    protocol_unix_written(p, 2, NOW);
    return p;
}

static void keeps_what_counts(void **state)
{
    struct protocol *p = open_source(), *q;
    struct image i = export_of(p);
    struct protocol_stats st;
    struct iovec vec[4];
    struct ferry_error err;

    (void)state;
    assert_int_equal(protocol_state(p), PROTOCOL_OPEN); /* untouched */
    assert_int_equal(import_of(i.data, i.len, NOW, &q, &err), 0);
    protocol_stats(q, &st);
    assert_int_equal(protocol_state(q), PROTOCOL_AWAY);
    assert_int_equal(st.read, 10);
    assert_int_equal(st.acked, 5);
    assert_int_equal(st.received, 9);
    assert_int_equal(st.written, 2);
    assert_int_equal(st.epoch, 1);
    assert_int_equal(protocol_dial_at(q), NOW);
    assert_int_equal(protocol_write_vec(q, vec, 4), 1);
    assert_int_equal(vec[0].iov_len, 7);
    assert_memory_equal(vec[0].iov_base, "cdefghi", 7);
    /* It resumes with the next epoch, and sends again from where the peer says. */
    protocol_dialling(q);
    protocol_connected(q, NOW);
    struct iovec parts[2];
    assert_int_equal(protocol_output(q, NOW, parts), 1);
    struct hello h;
    struct hello_refusal refusal;
    assert_int_equal(hello_get(parts[0].iov_base, parts[0].iov_len, &h, &refusal), 0);
    assert_true(h.resume);
    assert_int_equal(h.epoch, 2);
    assert_int_equal(h.delivered, 2);
    protocol_sent(q, parts[0].iov_len);
    uint8_t buf[64];
    static const uint8_t instance[FRAME_ID] = {9};
    give(q, buf, frame_put_hello_ok(buf, 0, 7, instance, 1 << 20));
    assert_int_equal(protocol_state(q), PROTOCOL_OPEN);
    assert_int_equal(protocol_output(q, NOW, parts), 1);
    const uint8_t *at = parts[0].iov_base;
    assert_memory_equal(at + parts[0].iov_len - 3, "rld", 3);
    protocol_free(p);
    protocol_free(q);
    free(i.data);
}

/* A HELLO under way may have arrived: the successor asks with RESUME first. */
static void unanswered_hello(void **state)
{
    struct protocol *p = source(), *q;
    struct ferry_error err;

    (void)state;
    for (int sent = 0; sent < 2; sent++) {
        protocol_dialling(p);
        protocol_connected(p, NOW);
        if (sent) {
            swallow_output(p);
        }
        struct image i = export_of(p);
        assert_int_equal(import_of(i.data, i.len, NOW, &q, &err), 0);
        assert_int_equal(protocol_state(q), PROTOCOL_OPENING);
        protocol_dialling(q);
        protocol_connected(q, NOW);
        struct iovec parts[2];
        assert_int_equal(protocol_output(q, NOW, parts), 1);
        assert_int_equal(((uint8_t *)parts[0].iov_base)[1], sent ? FRAME_RESUME : FRAME_NEW);
        protocol_free(q);
        free(i.data);
        protocol_disconnected(p, NOW, "test");
    }
    protocol_free(p);
}

static void refuses(const struct image *i, const char *words)
{
    struct ferry_error err;
    struct protocol *q;

    assert_true(import_of(i->data, i->len, NOW, &q, &err) < 0);
    assert_null(q);
    if (!strstr(err.msg, words)) {
        fail_msg("'%s' does not say '%s'", err.msg, words);
    }
}

static void foreign_state_is_refused(void **state)
{
    struct protocol *p = open_source(), *q;
    struct image i = export_of(p);
    struct ferry_error err;

    (void)state;
    i.data[7] = PROTOCOL_STATE_VERSION + 1;
    refuses(&i, "stream state of version 2, this relay knows 1");
    i.data[7] = PROTOCOL_STATE_VERSION;
    i.data[0] ^= 1;
    refuses(&i, "not the state of a stream");
    i.data[0] ^= 1;
    memset(i.data + 9, 0, FRAME_ID);
    refuses(&i, "no stream id");
    memset(i.data + 9, 7, FRAME_ID);
    assert_true(import_of(i.data, i.len, NOW - 2 * FERRY_NS_PER_S, &q, &err) < 0);
    assert_non_null(strstr(err.msg, "a time that has not come yet"));
    for (size_t n = 0; n < i.len; n++) {
        assert_true(import_of(i.data, n, NOW, &q, &err) < 0);
    }
    protocol_free(p);
    free(i.data);
}

/* Whatever single byte is wrong: it is refused, or what comes of it is a stream that stands on its
 * own feet. */
static void any_byte_wrong(void **state)
{
    struct protocol *p = open_source();
    struct image i = export_of(p);
    unsigned refused = 0, taken = 0;

    (void)state;
    for (size_t n = 0; n < i.len; n++) {
        for (int bit = 0; bit < 8; bit++) {
            struct ferry_error err;
            struct protocol *q;

            i.data[n] ^= (uint8_t)(1 << bit);
            if (import_of(i.data, i.len, NOW, &q, &err) < 0) {
                refused++;
            } else {
                taken++;
                struct image again = export_of(q);
                assert_memory_equal(again.data, i.data, again.len);
                free(again.data);
                protocol_tick(q, NOW);
                assert_true(protocol_memory_max(q) < 300 << 20);
                protocol_free(q);
            }
            i.data[n] ^= (uint8_t)(1 << bit);
        }
    }
    printf("%u refused, %u taken\n", refused, taken);
    assert_true(refused > taken / 4);
    protocol_free(p);
    free(i.data);
}

/* ---- a whole relay ---- */

static struct relay_spec *spec_of(enum relay_role role)
{
    struct relay_spec *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    s->role = role;
    s->key = strdup("key-1");
    s->move = strdup("0f1e-move");
    s->generation = 3;
    s->resume_window_ns = 240 * FERRY_NS_PER_S;
    s->rate = 1 << 20;
    s->peer_node = strdup("b");
    s->address = strdup("10.0.0.2");
    s->dir = role == RELAY_SOURCE ? strdup("/run/pod/m") : NULL;
    s->has_owner = true;
    s->owner = 61201;
    s->channels[0] = (struct relay_channel){.logical = 49152, .port = 4711};
    s->channels[0].unix_path = role == RELAY_TARGET ? strdup("/run/pod/49152.sock") : NULL;
    s->n_channels = 1;
    return s;
}

static struct image pack_of(const struct relay_state *s)
{
    struct pack k = {0};

    relay_state_pack(s, NOW, &k);
    struct image i = {.data = malloc(k.len), .len = k.len};
    assert_non_null(i.data);
    k = (struct pack){.data = i.data, .room = i.len};
    relay_state_pack(s, NOW, &k);
    return i;
}

/* A source with a stream that flows and one that was just accepted, a target with a tombstone. */
static struct image relay_image(int control, int stream_fd)
{
    struct protocol *p = open_source();
    struct relay_state_stream streams[] = {
        {.fd = stream_fd,
         .since_ms = 5,
         .peer = "10.0.0.2:4711",
         .born_ns = 7,
         .opened = true,
         .p = p},
        {.fd = 4, .fresh = true, .peer = "10.0.0.2:4711"},
    };
    struct relay_state_tomb tomb = {.stone = {.move = "0f1e-move", .channel = 49152, .epoch = 2},
                                    .until_ns = NOW + 1};
    struct relay_state_group groups[] = {
        {.spec = spec_of(RELAY_SOURCE),
         .dir = 0,
         .listeners = {1},
         .ports = {4711},
         .streams = streams,
         .n_streams = 2},
        {.spec = spec_of(RELAY_TARGET),
         .dir = -1,
         .listeners = {2},
         .ports = {4712},
         .tombs = &tomb,
         .n_tombs = 1},
    };
    struct relay_state_path path = {.node = (char *)"b", .bytes_per_s = 9, .rtt_us = 8};
    int predecessor = 5;
    struct relay_state s = {.alone = control < 0,
                            .instance = {1, 2, 3},
                            .rate = 77,
                            .totals = {1, 2, 3},
                            .control = control,
                            .n_fds = 7,
                            .predecessors = &predecessor,
                            .n_predecessors = 1,
                            .paths = &path,
                            .n_paths = 1,
                            .groups = groups,
                            .n_groups = 2};
    struct image i = pack_of(&s);

    relay_spec_free(groups[0].spec);
    relay_spec_free(groups[1].spec);
    protocol_free(p);
    return i;
}

static void whole_relay_is_kept(void **state)
{
    struct image i = relay_image(3, 6), again;
    struct ferry_error err;
    struct relay_state s;

    (void)state;
    if (relay_state_unpack(i.data, i.len, NOW, &s, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(s.n_groups, 2);
    assert_int_equal(s.groups[0].n_streams, 2);
    assert_string_equal(s.groups[0].spec->dir, "/run/pod/m");
    assert_true(s.groups[0].streams[1].fresh);
    again = pack_of(&s);
    assert_int_equal(again.len, i.len);
    assert_memory_equal(again.data, i.data, i.len);
    relay_state_done(&s);
    free(again.data);
    free(i.data);
}

static void refuses_relay(struct image i, const char *words)
{
    struct ferry_error err;
    struct relay_state s;

    assert_true(relay_state_unpack(i.data, i.len, NOW, &s, &err) < 0);
    if (!strstr(err.msg, words)) {
        fail_msg("'%s' does not say '%s'", err.msg, words);
    }
    free(i.data);
}

static void foreign_relay_is_refused(void **state)
{
    struct image i = relay_image(3, 6);

    (void)state;
    i.data[11]++;
    refuses_relay(i, "state of version 2, this relay knows 1");
    i = relay_image(3, 6);
    i.data[0]++;
    refuses_relay(i, "not the state of a relay");
    refuses_relay(relay_image(3, 3), "a descriptor that two things claim");
    refuses_relay(relay_image(3, 7), "a descriptor that is not there");
    refuses_relay(relay_image(3, -1), "a stream whose socket is there and should not, or is not");
    refuses_relay(relay_image(-1, 6), "not one path alone");
    i = relay_image(3, 6);
    i.data = realloc(i.data, i.len + 1);
    i.data[i.len++] = 0;
    refuses_relay(i, "something behind its end");
}

/* Cut anywhere it is refused; with any bit wrong it is refused or something that can be written
 * again. */
static void broken_relay(void **state)
{
    struct image i = relay_image(3, 6);
    struct ferry_error err;
    struct relay_state s;

    (void)state;
    for (size_t n = 0; n < i.len; n++) {
        assert_true(relay_state_unpack(i.data, n, NOW, &s, &err) < 0);
    }
    for (size_t bit = 0; bit < 8 * i.len; bit++) {
        i.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (relay_state_unpack(i.data, i.len, NOW, &s, &err) == 0) {
            struct image again = pack_of(&s);

            assert_int_equal(again.len, i.len);
            free(again.data);
            relay_state_done(&s);
        }
        i.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(i.data);
}

/* The list of removed nodes, behind the end of what older relays know: it is there whole or not. */
static void removed_nodes_come_along(void **state)
{
    struct tls_denial list[] = {
        {.node = "a"}, {.node = "b", .generation = "g1"}, {.node = "c", .before_s = 17}};
    struct relay_state s = {.control = -1, .alone = false, .n_fds = 0};
    struct image without = relay_image(3, 6);
    struct ferry_error err;

    (void)state;
    assert_int_equal(relay_state_unpack(without.data, without.len, NOW, &s, &err), 0);
    assert_int_equal(s.n_denials, 0);
    tls_denials_list_free(s.denials, s.n_denials);
    s.denials = list;
    s.n_denials = COUNT_OF(list);
    struct image i = pack_of(&s);
    s.denials = NULL;
    s.n_denials = 0;
    relay_state_done(&s);
    assert_true(i.len > without.len);
    assert_memory_equal(i.data, without.data, without.len);
    for (size_t n = without.len + 1; n < i.len; n++) {
        assert_true(relay_state_unpack(i.data, n, NOW, &s, &err) < 0);
    }
    assert_int_equal(relay_state_unpack(i.data, i.len, NOW, &s, &err), 0);
    assert_int_equal(s.n_denials, 3);
    assert_string_equal(s.denials[0].node, "a");
    assert_null(s.denials[0].generation);
    assert_string_equal(s.denials[1].generation, "g1");
    assert_int_equal(s.denials[2].before_s, 17);
    relay_state_done(&s);
    free(i.data);
    free(without.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_counts),
        cmocka_unit_test(unanswered_hello),
        cmocka_unit_test(foreign_state_is_refused),
        cmocka_unit_test(any_byte_wrong),
        cmocka_unit_test(whole_relay_is_kept),
        cmocka_unit_test(foreign_relay_is_refused),
        cmocka_unit_test(broken_relay),
        cmocka_unit_test(removed_nodes_come_along),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
