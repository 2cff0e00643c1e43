/* What looks remember of VMIs, and when it is forgotten. ASan is the judge of what is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/count.h"
#include "base/str.h"
#include "handler/move/memory_map.h"

static bool is(void *ctx, const char *uid)
{
    return ferry_streq(ctx, uid);
}

static void sweep(struct memory_map *m, const char *known, int times)
{
    for (int i = 0; i < times; i++) {
        memory_map_sweep(m, is, (void *)(uintptr_t)known);
    }
}

/* What is remembered of the VMI, and remembers `next`. */
static int64_t look(struct memory_map *m, const char *uid, int64_t next)
{
    struct pass_memory *lent = memory_map_lend(m, uid);
    int64_t before = lent->told_ms;

    lent->told_ms = next;
    memory_map_give_back(m, lent);
    return before;
}

static void kept_while_known(void **state)
{
    struct memory_map *m = memory_map_new();

    (void)state;
    assert_int_equal(look(m, "a", 1), 0);
    assert_int_equal(look(m, "b", 2), 0);
    sweep(m, "a", 9);
    assert_int_equal(look(m, "a", 3), 1);
    assert_int_equal(look(m, "b", 4), 0);
    memory_map_free(m);
}

static void kept_for_a_moment_between_caches(void **state)
{
    struct memory_map *m = memory_map_new();

    (void)state;
    look(m, "a", 1);
    sweep(m, "", 2);
    sweep(m, "a", 1);
    sweep(m, "", 2);
    assert_int_equal(look(m, "a", 2), 1);
    sweep(m, "", 2);
    assert_int_equal(look(m, "a", 3), 2);
    sweep(m, "", 3);
    assert_int_equal(look(m, "a", 4), 0);
    memory_map_free(m);
}

/* A look may take long: its launcher hangs, its VMI is deleted, and sweeps follow one another. */
static void kept_while_lent(void **state)
{
    struct memory_map *m = memory_map_new();
    struct pass_memory *lent = memory_map_lend(m, "a");

    (void)state;
    lent->sync_error = ferry_strdup("held");
    sweep(m, "", 9);
    assert_string_equal(lent->sync_error, "held");
    memory_map_give_back(m, lent);
    sweep(m, "", 3);
    lent = memory_map_lend(m, "a");
    assert_null(lent->sync_error);
    memory_map_free(m);
}

/* Somebody sets the day's clock an hour forward or back: what was three seconds ago still was. */
static void times_follow_the_clock(void **state)
{
    static const int64_t steps[] = {3600000, -3600000, -240000, 7, 0};
    enum { DAY = 1700000000, AGO = 3000 };

    (void)state;
    for (size_t i = 0; i < FERRY_COUNT(steps); i++) {
        int64_t mono = 5000, day = (int64_t)DAY * 1000;
        struct pass_memory m = {0};

        pass_memory_follow_clock(&m, day - mono);
        m.told_ms = m.progress_ms = m.undecided_since_ms = m.gone_since_ms = day;
        m.recovered_ms = m.asked_ms = m.seen_ms = m.patched_ms = m.trouble_ms = day;
        mono += AGO;
        day += AGO + steps[i];
        pass_memory_follow_clock(&m, day - mono);
        const int64_t times[] = {m.told_ms,       m.progress_ms,  m.undecided_since_ms,
                                 m.gone_since_ms, m.recovered_ms, m.asked_ms,
                                 m.seen_ms,       m.patched_ms,   m.trouble_ms};
        for (size_t k = 0; k < FERRY_COUNT(times); k++) {
            assert_int_equal(day - times[k], AGO);
        }
        m.told_ms = 0; /* never */
        pass_memory_follow_clock(&m, day - mono + 1000);
        assert_int_equal(m.told_ms, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_while_known),
        cmocka_unit_test(kept_for_a_moment_between_caches),
        cmocka_unit_test(kept_while_lent),
        cmocka_unit_test(times_follow_the_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
