/* What has passed although the clock was set: tables. */
#include "lib/unit.h"

#include "base/str.h"
#include "control/plan/clock_steps.h"

enum { HOUR = 3600000, START = 100 * HOUR };

/* A clock that is set now and then; looked at before and after. */
struct change {
    int64_t after_ms, by_ms; /* so long after the one before, by so much */
};

static struct clock_steps history(const struct change *changes, size_t n, int64_t *ret_wall)
{
    struct clock_steps s = {0};
    int64_t wall = START, mono = 5000;

    clock_steps_observe(&s, wall, mono);
    for (size_t i = 0; i < n; i++) {
        wall += changes[i].after_ms + changes[i].by_ms;
        mono += changes[i].after_ms;
        clock_steps_observe(&s, wall, mono);
    }
    *ret_wall = wall;
    return s;
}

static void elapsed(void **state)
{
    static const struct {
        const char *name;
        struct change changes[3];
        int64_t since_ms, later_ms; /* from START; asked so long after the last change */
        int64_t expected_ms;
    } cases[] = {
        {"a clock that nobody sets", {{10000, 0}}, 4000, 1000, 7000},
        {"one that is corrected", {{10000, 1999}}, 4000, 0, 7999},
        {"an hour forward", {{10000, HOUR}}, 4000, 1000, 7000},
        {"an hour forward, of something later", {{10000, HOUR}}, HOUR + 10500, 1000, 500},
        {"five minutes back", {{10000, -300000}}, 4000, 1000, 7000},
        {"five minutes back, of something later", {{10000, -300000}}, -289500, 1000, 500},
        {"a time that comes twice is the later one", {{10000, -300000}}, 4000, 295000, 1000},
        {"just after a step back, in whole seconds", {{10500, -300000}}, -290000, 1000, 1500},
        {"just after a step forward, in whole seconds", {{10500, HOUR}}, HOUR + 10000, 1000, 1500},
        {"a time that has not come yet", {{10000, 0}}, 60000, 0, 0},
        {"forward and back", {{10000, HOUR}, {10000, -HOUR}}, 4000, 1000, 17000},
        {"forward and back, of something between",
         {{10000, HOUR}, {10000, -HOUR}},
         HOUR + 15000,
         1000,
         6000},
        {"forward twice, of something between",
         {{10000, HOUR}, {10000, HOUR}},
         HOUR + 15000,
         1000,
         6000},
        {"back twice, of something between",
         {{10000, -300000}, {10000, -300000}},
         -285000,
         1000,
         6000},
        {"forward twice", {{10000, HOUR}, {10000, HOUR}}, 4000, 1000, 17000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t wall;
        struct clock_steps s = history(cases[i].changes, 3, &wall);
        int64_t got = clock_steps_elapsed(&s, START + cases[i].since_ms, wall + cases[i].later_ms);

        if (got != cases[i].expected_ms) {
            fail_msg("%s: %lld ms, not %lld", cases[i].name, (long long)got,
                     (long long)cases[i].expected_ms);
        }
    }
}

static void old_steps_are_forgotten(void **state)
{
    struct clock_steps s = {0};
    int64_t wall = START, mono = 0;

    (void)state;
    clock_steps_observe(&s, wall, mono);
    for (int i = 0; i < CLOCK_STEPS_MAX + 3; i++) {
        clock_steps_observe(&s, wall += 1000 + HOUR, mono += 1000);
    }
    assert_int_equal(s.n_steps, CLOCK_STEPS_MAX);
    assert_int_equal(clock_steps_elapsed(&s, wall - HOUR - 500, wall), 500);
}

/* What one process has seen, the next of the same boot goes on with. */
static void left_to_a_successor(void **state)
{
    static const struct {
        const char *name, *text; /* NULL = what was really left */
        const char *boot;
        int64_t expected_ms;
    } cases[] = {
        {"same boot", NULL, "b1", 17000},
        {"another boot, or host", NULL, "b2", 2 * HOUR + 17000},
        {"boot not known", NULL, "", 2 * HOUR + 17000},
        {"no text", "", "b1", 2 * HOUR + 17000},
        {"not JSON", "{", "b1", 2 * HOUR + 17000},
        {"not an object", "7", "b1", 2 * HOUR + 17000},
        {"steps of another kind", "{\"boot\":\"b1\",\"steps\":[1,{\"byMs\":5}]}", "b1",
         2 * HOUR + 17000},
    };
    const struct change changes[] = {{10000, HOUR}, {10000, HOUR}, {0, 0}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t wall;
        struct clock_steps before = history(changes, 3, &wall), after = {0};
        ferry_cleanup_free char *text = clock_steps_text(&before, "b1");

        clock_steps_recall(&after, cases[i].text ? cases[i].text : text, cases[i].boot);
        assert_false(
            clock_steps_observe(&after, wall, 99)); /* another monotonic clock is no step */
        int64_t got = clock_steps_elapsed(&after, START + 4000, wall + 1000);
        if (got != cases[i].expected_ms) {
            fail_msg("%s: %lld ms, not %lld", cases[i].name, (long long)got,
                     (long long)cases[i].expected_ms);
        }
        assert_true(clock_steps_observe(&after, wall + HOUR, 99));
    }
}

static void too_many_are_left(void **state)
{
    ferry_cleanup_buf struct ferry_buf text = {0};
    struct clock_steps s = {0};

    (void)state;
    ferry_buf_puts(&text, "{\"boot\":\"b\",\"steps\":[");
    for (int i = 1; i < 100; i++) {
        ferry_buf_printf(&text, "%s{\"beforeMs\":%d,\"byMs\":5000}", i > 1 ? "," : "", i);
    }
    ferry_buf_puts(&text, "]}");
    clock_steps_recall(&s, text.data, "b");
    assert_int_equal(s.n_steps, CLOCK_STEPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elapsed), cmocka_unit_test(old_steps_are_forgotten),
        cmocka_unit_test(left_to_a_successor), cmocka_unit_test(too_many_are_left)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
