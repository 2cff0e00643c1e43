/* Rate limits over a clock of the test's own: how much each move gets, and who must wait. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/common/rate.h"

enum { STREAMS_MAX = 8, PIECE = 64 * 1024 };
#define STEP (100 * 1000) /* ns */

struct move {
    struct relay_rate *rate;
    int streams;
    size_t piece;
    int64_t next[STREAMS_MAX];
    int64_t pause_ns; /* it has no more than a piece each so often */
    uint64_t bytes;
};

/* All streams read whenever they may. */
static void simulate(struct move *moves, size_t n, int64_t from, int64_t to)
{
    for (int64_t now = from; now < to; now += STEP) {
        for (size_t m = 0; m < n; m++) {
            for (int s = 0; s < moves[m].streams; s++) {
                if (now < moves[m].next[s]) {
                    continue;
                }
                int64_t until = relay_rate_spend(moves[m].rate, moves[m].piece, now);

                moves[m].bytes += moves[m].piece;
                moves[m].next[s] =
                    until > now + moves[m].pause_ns ? until : now + moves[m].pause_ns;
            }
        }
    }
}

static void expect_near(const char *what, uint64_t got, double wanted)
{
    double ratio = (double)got / wanted;

    if (ratio < 0.85 || ratio > 1.15) {
        fail_msg("%s: %llu, wanted about %.0f", what, (unsigned long long)got, wanted);
    }
}

static void test_one_move(void **state)
{
    struct relay_rate *relay = relay_rate_new(NULL, 0);
    struct move m = {.rate = relay_rate_new(relay, 50e6), .streams = 3, .piece = PIECE};
    const int64_t t = 1000 * FERRY_NS_PER_S;

    (void)state;
    simulate(&m, 1, t, t + 4 * FERRY_NS_PER_S);
    expect_near("own limit", m.bytes, 4 * 50e6);
    m.bytes = 0;
    relay_rate_set(relay, 20000000); /* the lower of the two counts */
    simulate(&m, 1, t + 4 * FERRY_NS_PER_S, t + 8 * FERRY_NS_PER_S);
    expect_near("the relay's limit", m.bytes, 4 * 20e6);
    relay_rate_set(relay, 0);
    relay_rate_set(m.rate, 0);
    assert_int_equal(relay_rate_spend(m.rate, 1 << 30, t + 9 * FERRY_NS_PER_S), 0);
    assert_int_equal(relay_rate_get(m.rate), 0);
    relay_rate_free(m.rate);
    relay_rate_free(relay);
}

static void test_moves_share(void **state)
{
    struct relay_rate *relay = relay_rate_new(NULL, 100e6);
    struct move m[2] = {{.rate = relay_rate_new(relay, 0), .streams = 8, .piece = PIECE},
                        {.rate = relay_rate_new(relay, 0), .streams = 1, .piece = PIECE}};
    int64_t t = 1000 * FERRY_NS_PER_S;

    (void)state;
    simulate(m, 2, t, t + 4 * FERRY_NS_PER_S);
    expect_near("both", m[0].bytes + m[1].bytes, 4 * 100e6);
    expect_near("with eight streams", m[0].bytes, 4 * 50e6);
    expect_near("with one", m[1].bytes, 4 * 50e6);
    /* What one leaves, the other uses. */
    m[0].bytes = m[1].bytes = 0;
    m[1].pause_ns = 10 * FERRY_NS_PER_MS;
    t += 4 * FERRY_NS_PER_S;
    simulate(m, 2, t, t + 4 * FERRY_NS_PER_S);
    expect_near("a modest one", m[1].bytes, 4 * 6.5e6);
    expect_near("the other", m[0].bytes, 4 * 93e6);
    /* And all of it when it is gone. */
    relay_rate_free(m[1].rate);
    m[0].bytes = 0;
    t += 5 * FERRY_NS_PER_S;
    simulate(m, 1, t, t + 4 * FERRY_NS_PER_S);
    expect_near("alone", m[0].bytes, 4 * 100e6);
    relay_rate_free(m[0].rate);
    relay_rate_free(relay);
}

static void test_small_reads_never_wait(void **state)
{
    struct relay_rate *relay = relay_rate_new(NULL, 1000000);
    struct relay_rate *bulk = relay_rate_new(relay, 0), *small = relay_rate_new(relay, 0);
    int64_t t = 1000 * FERRY_NS_PER_S;

    (void)state;
    assert_true(relay_rate_spend(bulk, 1 << 20, t) > t + FERRY_NS_PER_S / 2);
    assert_int_equal(relay_rate_spend(small, 4096, t), 0);
    assert_int_equal(relay_rate_spend(bulk, 64, t), 0);
    assert_int_equal(relay_rate_spend(NULL, 1 << 30, t), 0);
    relay_rate_free(bulk);
    relay_rate_free(small);
    relay_rate_free(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_move),
        cmocka_unit_test(test_moves_share),
        cmocka_unit_test(test_small_reads_never_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
