/* What callers of the API server may bring along, and how often somebody may guess a token. */
#include "lib/unit.h"

#include <stdio.h>

#include "apiserver/serve/guesses.h"
#include "apiserver/serve/terms.h"
#include "base/clock.h"

static void terms(void **state)
{
    static const struct {
        enum auth_role role;
        bool joins;
        size_t max_body;
        enum body_rank rank;
    } cases[] = {
        {AUTH_ANONYMOUS, true, 32 << 10, BODY_STRANGER},
        {AUTH_ANONYMOUS, false, 0, BODY_STRANGER},
        {AUTH_NOBODY, false, 64 << 10, BODY_STRANGER},
        {AUTH_VIEWER, false, 3 << 20, BODY_PERSON},
        {AUTH_NODE, false, 1 << 20, BODY_NODE},
        {AUTH_NODE, true, 32 << 10, BODY_NODE},
        {AUTH_CONTROLLER, false, 3 << 20, BODY_OPERATOR},
        {AUTH_ADMIN, false, 3 << 20, BODY_OPERATOR},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_terms t = terms_of(cases[i].role, cases[i].joins);

        assert_int_equal(t.max_body, cases[i].max_body);
        assert_int_equal(t.rank, cases[i].rank);
    }
}

#define MINUTE (60 * FERRY_NS_PER_S)

static void guesses(void **state)
{
    struct guesses *g = guesses_new();
    int64_t now = 5 * MINUTE;

    (void)state;
    for (int i = 0; i < GUESSES_MOST; i++) {
        assert_int_equal(guesses_wait_s(g, "10.0.0.1", now), 0);
        guesses_note(g, "10.0.0.1", now);
    }
    assert_int_equal(guesses_wait_s(g, "10.0.0.1", now), 61);
    assert_int_equal(guesses_wait_s(g, "::ffff:10.0.0.1", now), 61);
    assert_int_equal(guesses_wait_s(g, "10.0.0.1", now + MINUTE / 2), 31);
    assert_int_equal(guesses_wait_s(g, "10.0.0.2", now), 0);
    assert_int_equal(guesses_wait_s(g, "2001:db8::1", now), 0);
    now += MINUTE;
    assert_int_equal(guesses_wait_s(g, "10.0.0.1", now), 0);
    guesses_note(g, "10.0.0.1", now); /* a new minute */
    assert_int_equal(guesses_wait_s(g, "10.0.0.1", now), 0);
    guesses_free(g);
}

/* The table has an end; whoever is in it for longest makes room. */
static void guesses_by_many(void **state)
{
    struct guesses *g = guesses_new();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        char from[16];

        snprintf(from, sizeof(from), "10.0.%d.%d", i / 250, i % 250);
        for (int n = 0; n < GUESSES_MOST; n++) {
            guesses_note(g, from, MINUTE + i);
        }
        assert_true(guesses_wait_s(g, from, MINUTE + i) > 0);
    }
    assert_int_equal(guesses_wait_s(g, "10.0.0.0", MINUTE + 1000), 0);
    assert_true(guesses_wait_s(g, "10.0.3.200", MINUTE + 1000) > 0);
    guesses_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms),
        cmocka_unit_test(guesses),
        cmocka_unit_test(guesses_by_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
