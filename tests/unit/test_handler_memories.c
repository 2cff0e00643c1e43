/* What looks remember of VMIs, and when it is forgotten. ASan is the judge of what is used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "handler/memories.h"

static bool is(void *ctx, const char *uid)
{
    return ferry_streq(ctx, uid);
}

static void sweep(struct memories *m, const char *known, int times)
{
    for (int i = 0; i < times; i++) {
        memories_sweep(m, is, (void *)(uintptr_t)known);
    }
}

/* What is remembered of the VMI, and remembers `next`. */
static int64_t look(struct memories *m, const char *uid, int64_t next)
{
    struct look_memory *lent = memories_lend(m, uid);
    int64_t before = lent->told_ms;

    lent->told_ms = next;
    memories_give_back(m, lent);
    return before;
}

static void kept_while_known(void **state)
{
    struct memories *m = memories_new();

    (void)state;
    assert_int_equal(look(m, "a", 1), 0);
    assert_int_equal(look(m, "b", 2), 0);
    sweep(m, "a", 9);
    assert_int_equal(look(m, "a", 3), 1);
    assert_int_equal(look(m, "b", 4), 0);
    memories_free(m);
}

static void kept_for_a_moment_between_caches(void **state)
{
    struct memories *m = memories_new();

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
    memories_free(m);
}

/* A look may take long: its launcher hangs, its VMI is deleted, and sweeps follow one another. */
static void kept_while_lent(void **state)
{
    struct memories *m = memories_new();
    struct look_memory *lent = memories_lend(m, "a");

    (void)state;
    lent->sync_error = ferry_strdup("held");
    sweep(m, "", 9);
    assert_string_equal(lent->sync_error, "held");
    memories_give_back(m, lent);
    sweep(m, "", 3);
    lent = memories_lend(m, "a");
    assert_null(lent->sync_error);
    memories_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_while_known),
        cmocka_unit_test(kept_for_a_moment_between_caches),
        cmocka_unit_test(kept_while_lent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
