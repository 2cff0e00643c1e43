/* The window follows twice the bandwidth-delay product: how fast, and between which bounds. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/protocol/window.h"

enum { KIB = 1024, MIB = 1024 * KIB };

/* Delivers at `rate` bytes per second for `span_ms`, a piece each millisecond. */
static int64_t flow(struct window *w, double rate, int span_ms, int64_t now)
{
    for (int i = 0; i < span_ms; i++) {
        now += FERRY_NS_PER_MS;
        window_delivered(w, (uint64_t)(rate / 1000), now);
    }
    return now;
}

static struct window start(int64_t rtt_ms)
{
    struct window w;

    window_init(&w, MIB, 8 * MIB);
    window_rtt(&w, rtt_ms * FERRY_NS_PER_MS);
    return w;
}

static void near(uint32_t is, double should)
{
    if (is < should * 0.95 || is > should * 1.05) {
        fail_msg("%u, not about %.0f", is, should);
    }
}

static void test_where_it_ends(void **state)
{
    static const struct {
        double rate;
        int64_t rtt_ms;
        double bytes;
    } rows[] = {
        {10 * MIB, 1, MIB},       /* never below its start */
        {100 * MIB, 0, MIB},      /* no round trip known */
        {100 * MIB, 10, 2 * MIB}, /* 2 * 1 MiB */
        {50 * MIB, 40, 4 * MIB},  /* 2 * 2 MiB */
        {100 * MIB, 100, 8 * MIB} /* 20 MiB: the most */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct window w = start(rows[i].rtt_ms);

        flow(&w, rows[i].rate, 3000, FERRY_NS_PER_S);
        near(w.bytes, rows[i].bytes);
    }
}

static void test_start_within_the_most(void **state)
{
    struct window w;

    (void)state;
    window_init(&w, 4 * MIB, MIB);
    assert_int_equal(w.bytes, MIB);
}

/* A measurement takes four round trips. */
static void test_at_most_twice_at_a_time(void **state)
{
    struct window w = start(100);
    uint32_t last = w.bytes;
    int64_t now = FERRY_NS_PER_S;

    (void)state;
    now = flow(&w, 1000.0 * MIB, 395, now);
    assert_int_equal(w.bytes, MIB);
    for (int steps = 0; w.bytes < 8 * MIB; last = w.bytes) {
        now = flow(&w, 1000.0 * MIB, 1, now);
        assert_true(w.bytes <= 2 * last);
        steps += w.bytes > last;
        assert_true(w.bytes < 8 * MIB || steps == 3);
    }
}

/* What is not needed for a second goes, an eighth a second. */
static void test_slowly_back(void **state)
{
    struct window w = start(20);
    int64_t now = flow(&w, 200.0 * MIB, 3000, FERRY_NS_PER_S);

    (void)state;
    near(w.bytes, 8 * MIB);
    now = flow(&w, 110.0 * MIB, 5000, now);
    near(w.bytes, 8 * MIB); /* more than half of it is needed */
    now = flow(&w, 20.0 * MIB, 1000, now);
    near(w.bytes, 8 * MIB);
    now = flow(&w, 20.0 * MIB, 300, now);
    near(w.bytes, 7 * MIB);
    now = flow(&w, 20.0 * MIB, 1080, now);
    near(w.bytes, 7 * MIB / 8.0 * 7);
    now = flow(&w, 200.0 * MIB, 500, now);
    near(w.bytes, 8 * MIB); /* up at once */
    flow(&w, 1.0 * MIB, 60000, now);
    assert_int_equal(w.bytes, MIB);
}

static void test_shortest_round_trip(void **state)
{
    struct window w = start(10);

    (void)state;
    window_rtt(&w, 50 * FERRY_NS_PER_MS); /* its own queue */
    window_rtt(&w, 0);                    /* nothing */
    flow(&w, 200.0 * MIB, 1000, FERRY_NS_PER_S);
    near(w.bytes, 4 * MIB);
    /* Another connection may go another way; what was granted stays. */
    window_connected(&w);
    window_rtt(&w, 15 * FERRY_NS_PER_MS);
    assert_true(w.bytes > 3 * MIB);
    flow(&w, 200.0 * MIB, 1000, 5 * FERRY_NS_PER_S);
    near(w.bytes, 6 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_ends),
        cmocka_unit_test(test_start_within_the_most),
        cmocka_unit_test(test_at_most_twice_at_a_time),
        cmocka_unit_test(test_slowly_back),
        cmocka_unit_test(test_shortest_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
