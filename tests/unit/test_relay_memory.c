/* What each stream may hold of a relay's ceiling. */
#include "lib/unit.h"

#include "relay/common/memory.h"
#include "relay/protocol/protocol.h"

static void shares(void **state)
{
    static const struct {
        uint64_t ceiling;
        size_t streams;
        uint32_t share;
    } rows[] = {
        {512 << 20, 0, 8 << 20},   {512 << 20, 1, 8 << 20}, {512 << 20, 32, 8 << 20},
        {512 << 20, 64, 4 << 20},  {4 << 20, 2, 1 << 20},   {4 << 20, 16, 128 << 10},
        {1 << 20, 1000, 64 << 10}, /* the least */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(relay_memory_share_of(rows[i].ceiling, rows[i].streams), rows[i].share);
    }
    /* The sum of all parts never exceeds the ceiling above the least part. */
    for (size_t n = 1; n < 4096; n++) {
        uint64_t share = relay_memory_share_of(512 << 20, n);

        assert_true(share == RELAY_MEMORY_SHARE_LEAST || 2 * n * share <= UINT64_C(512) << 20);
        uint32_t block = relay_memory_block_of((uint32_t)share);
        assert_true(block % 4096 == 0 && block >= 4096 && block <= PROTOCOL_BLOCK);
    }
}

static void streams_come_and_go(void **state)
{
    struct relay_memory *m = relay_memory_new(4 << 20);

    (void)state;
    relay_memory_join(m);
    assert_int_equal(relay_memory_share(m), 2 << 20);
    relay_memory_join(m);
    assert_int_equal(relay_memory_share(m), 1 << 20);
    relay_memory_set(m, 8 << 20);
    assert_int_equal(relay_memory_share(m), 2 << 20);
    relay_memory_leave(m);
    assert_int_equal(relay_memory_share(m), 4 << 20);
    relay_memory_free(m);
}

/* A stream that holds more than its new part takes nothing until enough is delivered. */
static void a_smaller_part(void **state)
{
    static const uint8_t instance[FRAME_ID] = {9};
    struct protocol_config c = {.channel = 49152};
    uint8_t buf[64];
    struct iovec parts[2];
    void *where;
    int n;

    (void)state;
    protocol_config_defaults(&c);
    memset(c.id, 7, FRAME_ID);
    strcpy(c.move, "move");
    struct protocol *p = protocol_new_source(&c, 1);
    protocol_dialling(p);
    protocol_connected(p, 1);
    while ((n = protocol_output(p, 1, parts)) > 0) {
        protocol_sent(p, parts[0].iov_len + (n > 1 ? parts[1].iov_len : 0));
    }
    size_t ok = frame_put_hello_ok(buf, 0, 0, instance, 8 << 20);
    for (size_t at = 0; at < ok;) {
        size_t space = protocol_recv_space(p, &where);
        size_t take = space < ok - at ? space : ok - at;

        memcpy(where, buf + at, take);
        protocol_received(p, take, 1);
        at += take;
    }
    size_t held = 0, space;
    while (held < 1 << 20 && (space = protocol_read_space(p, &where)) > 0) {
        memset(where, 1, space);
        protocol_unix_read(p, space);
        held += space;
    }
    protocol_set_send_max(p, 128 << 10);
    assert_int_equal(protocol_read_space(p, &where), 0);
    while ((n = protocol_output(p, 1, parts)) > 0) {
        protocol_sent(p, parts[0].iov_len + (n > 1 ? parts[1].iov_len : 0));
    }
    size_t ack = frame_put_ack(buf, 0, held - (64 << 10), 8 << 20);
    for (size_t at = 0; at < ack;) {
        space = protocol_recv_space(p, &where);
        size_t take = space < ack - at ? space : ack - at;

        memcpy(where, buf + at, take);
        protocol_received(p, take, 1);
        at += take;
    }
    assert_in_range(protocol_read_space(p, &where), 1, 64 << 10);
    protocol_set_send_max(p, UINT32_MAX); /* never above what it was made for */
    struct protocol_stats st;
    protocol_stats(p, &st);
    assert_true(st.memory <= protocol_memory_max(p));
    protocol_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(streams_come_and_go),
        cmocka_unit_test(a_smaller_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
