/* When a stream looks again before it sleeps. */
#include "lib/unit.h"

#include <stdbool.h>

#include "base/clock.h"
#include "relay/stream/spin.h"

enum { US = 1000 };

static void test_after_small_messages(void **state)
{
    static const struct {
        size_t moved;
        int64_t look_us;
    } rows[] = {{0, 0}, {1, 50}, {64, 50}, {4096, 50}, {4097, 0}, {1 << 20, 0}};
    const struct relay_spin l = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(relay_spin_until(&l, rows[i].moved, 7 * FERRY_NS_PER_S),
                         7 * FERRY_NS_PER_S + rows[i].look_us * US);
    }
}

/* A yield that took long was one to others, who want the CPU: then it is better to sleep. */
static void test_a_busy_cpu(void **state)
{
    static const struct {
        int64_t late_us;
        bool rests;
    } rows[] = {{0, false}, {20, false}, {99, false}, {100, true}, {3000, true}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct relay_spin l = {0};
        int64_t until = relay_spin_until(&l, 64, 7 * FERRY_NS_PER_S);
        int64_t now = until + rows[i].late_us * US;

        relay_spin_over(&l, until, now);
        assert_int_equal(relay_spin_until(&l, 64, now + US) == now + US, rows[i].rests);
        assert_int_equal(relay_spin_until(&l, 64, now + FERRY_NS_PER_S - 1) ==
                             now + FERRY_NS_PER_S - 1,
                         rows[i].rests);
        assert_true(relay_spin_until(&l, 64, now + FERRY_NS_PER_S) > now + FERRY_NS_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_small_messages),
        cmocka_unit_test(test_a_busy_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
