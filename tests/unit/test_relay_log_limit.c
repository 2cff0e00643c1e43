/* Lines about strangers: what is written, and what is only counted. */
#include "lib/unit.h"

#include "base/clock.h"
#include "relay/common/log_limit.h"

#define S FERRY_NS_PER_S

static void same_line_again(void **state)
{
    struct relay_log_limit *h = relay_log_limit_new();
    int written = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        char peer[64];

        /* Another port is the same host. */
        snprintf(peer, sizeof(peer), "192.0.2.1:%d", 1000 + i);
        written += relay_log_limit_ask(h, peer, "not TLS", 100 * S + i) >= 0;
    }
    assert_int_equal(written, LOG_LIMIT_SAME);
    /* Others are still heard: another host, another reason. */
    assert_int_equal(relay_log_limit_ask(h, "192.0.2.2:1", "not TLS", 101 * S), 0);
    assert_int_equal(relay_log_limit_ask(h, "[2001:db8::1]:1", "not TLS", 101 * S), 0);
    assert_int_equal(relay_log_limit_ask(h, "192.0.2.1:1", "expired", 101 * S), 0);
    /* A minute later it says how many there were. */
    assert_int_equal(relay_log_limit_ask(h, "192.0.2.1:1", "not TLS", 161 * S),
                     1000 - LOG_LIMIT_SAME);
    assert_int_equal(relay_log_limit_ask(h, "192.0.2.1:1", "not TLS", 161 * S), 0);
    relay_log_limit_free(h);
}

static void many_reasons(void **state)
{
    struct relay_log_limit *h = relay_log_limit_new();
    int written = 0;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        char text[32];

        snprintf(text, sizeof(text), "reason %d", i);
        written += relay_log_limit_ask(h, "192.0.2.1:1", text, 100 * S) >= 0;
    }
    assert_true(written <= LOG_LIMIT_ALL);
    assert_true(written >= LOG_LIMIT_HOST);
    relay_log_limit_free(h);
}

static void many_hosts(void **state)
{
    struct relay_log_limit *h = relay_log_limit_new();
    int written = 0;

    (void)state;
    for (int minute = 0; minute < 3; minute++) {
        for (int i = 0; i < 20000; i++) {
            char peer[64];

            snprintf(peer, sizeof(peer), "[2001:db8::%x]:1", i);
            written += relay_log_limit_ask(h, peer, "not TLS", (100 + 60 * minute) * S) >= 0;
        }
    }
    assert_int_equal(written, 3 * LOG_LIMIT_ALL);
    relay_log_limit_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_line_again),
        cmocka_unit_test(many_reasons),
        cmocka_unit_test(many_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
