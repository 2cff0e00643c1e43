/* When a path counts as dead: each row is a history of samples, one a second. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/path.h"

enum { LIMIT_S = 10, STEPS_MAX = 64 };

/* Letters of a history: what one sample shows.
 *   i  nothing is out, and nothing was heard for long
 *   a  data is out, and an acknowledgement came just now
 *   u  data is out, no acknowledgement since the last sample
 *   z  a window probe is out, unanswered
 *   w  window of zero: all is acknowledged, the probe was answered just now
 */
static struct relay_path_sample sample(char letter, int second, int *quiet_s)
{
    bool heard = letter == 'a' || letter == 'w';

    *quiet_s = heard ? 0 : *quiet_s + 1;
    return (struct relay_path_sample){
        .now_ns = (1000 + second) * FERRY_NS_PER_S,
        .unacked = letter == 'a' || letter == 'u' ? 3 : 0,
        .probes = letter == 'z' ? 1 : 0,
        .last_ack_ms = (unsigned)*quiet_s * 1000 + 100,
    };
}

static void test_histories(void **state)
{
    static const struct {
        const char *history;
        int dies_at; /* index of the sample, -1 = never */
    } rows[] = {
        {"iiiiiiiiiiiiiiiiiiiiiiii", -1},
        {"aaaaaaaaaaaaaaaaaaaaaaaa", -1},
        {"wwwwwwwwwwwwwwwwwwwwwwww", -1}, /* the peer is well, but takes nothing */
        {"uuuuuuuuuuu", 10},
        {"uuuuuuuuuu", -1},
        {"auuuuuuuuuu", 10},
        {"aaaauuuuuuuuuu", 13},
        {"uuuuuuuuuauuuuuuuuu", -1}, /* heard in between */
        {"uuuuuuuuuauuuuuuuuuu", 19},
        {"iiiiiiiiiiiiiiiiuuuuuuuuu", -1}, /* long idle is not held against it */
        {"iiiiiiiiiiiiiiiiuuuuuuuuuu", 25},
        {"wwwwzzzzzzzzzz", 13}, /* stalled, then the path died */
        {"wwwwzzzzzzzzzw", -1},
        {"uuuuuiuuuuuuuuu", -1}, /* all acknowledged in between, however it came */
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

static void test_waiting(void **state)
{
    const struct relay_path_sample idle = {.last_ack_ms = 99999}, out = {.unacked = 1},
                                   probing = {.probes = 1};

    (void)state;
    assert_false(relay_path_waiting(&idle));
    assert_true(relay_path_waiting(&out));
    assert_true(relay_path_waiting(&probing));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories),
        cmocka_unit_test(test_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
