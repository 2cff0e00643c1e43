/* When a path counts as dead: each row is a history of samples, one a second. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/common/path.h"
#include "relay/stream/paths.h"

enum { LIMIT_S = 10, STEPS_MAX = 64 };

/* Letters of a history: what one sample shows. Upper case = something arrived since the last one.
 *   I i  nothing out, nothing queued: only keepalive asks
 *   A u  data is out
 *   W w  a window of zero: all that was sent is acknowledged, more is queued, no probe is out
 *     z  ... and a probe is out, unanswered
 */
static struct relay_path_sample sample(char letter, int second, int *quiet_s)
{
    bool heard = letter == 'I' || letter == 'A' || letter == 'W';

    *quiet_s = heard ? 0 : *quiet_s + 1;
    return (struct relay_path_sample){
        .now_ns = (1000 + second) * FERRY_NS_PER_S,
        .unacked = letter == 'A' || letter == 'u' ? 3 : 0,
        .probes = letter == 'z' ? 1 : 0,
        .queued = letter == 'W' || letter == 'w' || letter == 'z',
        .quiet_ms = (unsigned)*quiet_s * 1000 + 100,
    };
}

static void test_histories(void **state)
{
    static const struct {
        const char *history;
        int dies_at; /* index of the sample, -1 = never */
    } rows[] = {
        {"IiiIiiIiiIiiIiiIiiIii", -1},                 /* idle and well */
        {"IiiIiiiiiiiiii", 13},                        /* idle, and then nobody answers */
        {"AAAAAAAAAAAAAAAAAAAAAAAA", -1},              /* busy and well */
        {"WwWwwWwwwwWwwwwwwwwwwwwwwwwwwwwwwwwwW", -1}, /* well, but takes nothing */
        {"uuuuuuuuuuu", 10},
        {"uuuuuuuuuu", -1},
        {"Auuuuuuuuuu", 10},
        {"AAAAuuuuuuuuuu", 13},
        {"uuuuuuuuuAuuuuuuuuu", -1}, /* heard in between */
        {"uuuuuuuuuAuuuuuuuuuu", 19},
        {"IiiIiiIiiuuuuuuu", -1}, /* what idle time there was counts */
        {"IiiIiiIiiuuuuuuuu", 16},
        {"WwwwwwwwwwwwwzzzzzzzzzW", -1}, /* stalled; the probe was answered late */
        {"Wwwwwwwwwwwwwzzzzzzzzzz", 22}, /* stalled, then the path died */
        {"uuuuuwuuuuuuuuu", -1},         /* all acknowledged in between */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct relay_path path = {0};
        int quiet_s = 0, died = -1;

        for (int k = 0; rows[i].history[k] && died < 0; k++) {
            struct relay_path_sample s = sample(rows[i].history[k], k, &quiet_s);

            if (relay_path_dead(&path, &s, LIMIT_S * FERRY_NS_PER_S)) {
                died = k;
            }
        }
        if (died != rows[i].dies_at) {
            fail_msg("%s: died at %d, expected %d", rows[i].history, died, rows[i].dies_at);
        }
    }
}

/* A path is known by the streams that filled it. */
static void rates_of_a_path(void **state)
{
    struct relay_paths *p = relay_paths_new();
    uint64_t rate;
    int64_t rtt;

    (void)state;
    relay_paths_note(p, "b", 5000, 300);
    relay_paths_last(p, "b", &rate, &rtt);
    assert_int_equal(rate, 0);
    assert_int_equal(rtt, 300);
    relay_paths_note(p, "b", 100 << 20, 200);
    for (int i = 0; i < 100; i++) {
        relay_paths_note(p, "b", 5000, 0); /* an idle stream beside it */
    }
    relay_paths_last(p, "b", &rate, &rtt);
    assert_int_equal(rate, 100 << 20);
    assert_int_equal(rtt, 200);
    for (int i = 0; i < 200; i++) {
        relay_paths_note(p, "b", 10 << 20, 0);
    }
    relay_paths_last(p, "b", &rate, &rtt);
    assert_int_equal(rate, 10 << 20); /* it became slower for good */
    relay_paths_last(p, "c", &rate, &rtt);
    assert_int_equal(rate, 0);
    relay_paths_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(rates_of_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
