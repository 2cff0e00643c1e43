/* The full table of where a guest is. */
#include "lib/unit.h"

#include "api/outcome.h"

#define S(x) OUTCOME_SOURCE_##x
#define T(x) OUTCOME_TARGET_##x

/* W wait, S on source, T on target, R resume the source, L lost; one letter per target state:
 * unknown, gone, incoming, active, post-copy, post-copy paused, never ran. */
static const struct {
    enum outcome_source source;
    const char *precopy, *postcopy;
} rows[] = {
    {S(UNKNOWN), "WWWTWWW", "WWWTWWW"},  {S(GONE), "WLWTWWL", "WLLTWLL"},
    {S(ACTIVE), "SSSWWWS", "WWWWWWW"},   {S(STOPPED), "WRWTWWR", "WLWTWWR"},
    {S(POSTCOPY), "WLWTWWR", "WLWTWWR"},
};

static enum outcome expected(char letter)
{
    switch (letter) {
    case 'S':
        return OUTCOME_ON_SOURCE;
    case 'T':
        return OUTCOME_ON_TARGET;
    case 'R':
        return OUTCOME_RESUME_SOURCE;
    case 'L':
        return OUTCOME_LOST;
    default:
        return OUTCOME_WAIT;
    }
}

static void every_case(void **state)
{
    (void)state;
    assert_int_equal(COUNT_OF(rows), OUTCOME_SOURCE_COUNT);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t t = 0; t < OUTCOME_TARGET_COUNT; t++) {
            print_message("  source %zu target %zu\n", i, t);
            assert_int_equal(api_outcome_of(rows[i].source, t, false),
                             expected(rows[i].precopy[t]));
            assert_int_equal(api_outcome_of(rows[i].source, t, true),
                             expected(rows[i].postcopy[t]));
        }
    }
}

/* What must hold whatever the table says. */
static void never_two(void **state)
{
    (void)state;
    for (int s = 0; s < OUTCOME_SOURCE_COUNT; s++) {
        for (int t = 0; t < OUTCOME_TARGET_COUNT; t++) {
            for (int post = 0; post < 2; post++) {
                enum outcome o = api_outcome_of(s, t, post);

                /* A source that stands still may run again only when the target is known to be
                 * dead, and in post-copy only when it is known that it never ran. */
                if (o == OUTCOME_RESUME_SOURCE) {
                    assert_true(s == S(STOPPED) || s == S(POSTCOPY));
                    assert_true(t == T(NEVER_RAN) || (t == T(GONE) && !post && s == S(STOPPED)));
                }
                /* Nothing is given up while a side does not answer. */
                if (s == S(UNKNOWN) || t == T(UNKNOWN)) {
                    assert_int_not_equal(o, OUTCOME_LOST);
                }
                if (o == OUTCOME_ON_TARGET) {
                    assert_int_equal(t, T(ACTIVE));
                    assert_int_not_equal(s, S(ACTIVE));
                }
                if (o == OUTCOME_ON_SOURCE) {
                    assert_int_equal(s, S(ACTIVE));
                    assert_int_not_equal(t, T(ACTIVE));
                }
            }
        }
    }
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(api_outcome_name(OUTCOME_WAIT), "undecided-wait");
    assert_string_equal(api_outcome_name(OUTCOME_LOST), "lost");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(never_two),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
