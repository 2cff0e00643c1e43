/* Tables for src/base/daemon.c. */
#include "lib/unit.h"

#include <unistd.h>

#include "base/daemon.h"
#include "base/fd.h"

static int check_number(void *ctx, struct ferry_error *err)
{
    const int *number = ctx;

    return *number < 10 ? 0 : ferry_fail(err, FERRY_INVALID, "--number: %d is 10 or more", *number);
}

static void calls_are_checked_in_one_order(void **state)
{
    static const struct {
        const char *argv[4];
        int rc;
        const char *message;
    } cases[] = {
        {{"test", "--number", "9"}, 0, ""},
        {{"test"}, 0, ""},
        {{"test", "--number", "10"}, -FERRY_INVALID, "--number: 10 is 10 or more"},
        {{"test", "--number", "x"}, -FERRY_INVALID, "--number"},
        {{"test", "more"}, -FERRY_INVALID, "unexpected argument 'more' (see test --help)"},
        {{"test", "--log-level", "loud"}, -FERRY_INVALID, "--log-level: 'loud'"},
        {{"test", "--nothing"}, -FERRY_INVALID, "unknown option --nothing"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int number = 0, argc = 0;
        struct ferry_log_options lo = {0};
        const struct ferry_option options[] = {
            {"number", 0, FERRY_OPTION_INT, &number, "N", "a number"},
            FERRY_LOG_OPTION_ROWS(&lo),
            {0},
        };
        const struct ferry_command command = {
            .name = "test", .usage = "", .summary = "", .options = options};
        const struct ferry_daemon d = {.program = "test",
                                       .command = &command,
                                       .log = &lo,
                                       .check = check_number,
                                       .ctx = &number};
        char *argv[5] = {NULL};
        struct ferry_error err = {0};

        for (; argc < 4 && cases[i].argv[argc]; argc++) {
            argv[argc] = (char *)(uintptr_t)cases[i].argv[argc];
        }
        assert_int_equal(ferry_daemon_parse(&d, argc, argv, &err), cases[i].rc);
        if (!ferry_str_starts(err.msg, cases[i].message)) {
            fail_msg("case %zu: %s", i, err.msg);
        }
    }
}

static void roots(void **state)
{
    static const struct {
        const char *root;
        int rc;
    } cases[] = {
        {"", 0}, {"/", 0}, {"/srv/site", 0}, {"site", -FERRY_INVALID}, {".", -FERRY_INVALID}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(ferry_daemon_check_root(cases[i].root, NULL), cases[i].rc);
    }
}

static void one_process_per_root(void **state)
{
    char root[] = "/tmp/ferry-test-XXXXXX";
    struct ferry_error err;

    (void)state;
    assert_non_null(mkdtemp(root));
    int first = ferry_daemon_lock(root, "x.lock", "ferry-x", &err);
    assert_true(first >= 0);
    assert_int_equal(ferry_daemon_lock(root, "x.lock", "ferry-x", &err), -FERRY_CONFLICT);
    assert_non_null(strstr(err.msg, "another ferry-x works on /tmp/ferry-test-"));
    int other = ferry_daemon_lock(root, "y.lock", "ferry-y", &err);
    assert_true(other >= 0);
    close(first);
    close(other);
    int again = ferry_daemon_lock(root, "x.lock", "ferry-x", &err);
    assert_true(again >= 0);
    close(again);
    assert_int_equal(ferry_remove_tree(root, NULL), 0);
}

static void places_beside_this_program(void **state)
{
    ferry_cleanup_free char *self = ferry_daemon_beside("test_base_daemon");
    ferry_cleanup_free char *up = ferry_daemon_beside("../x");

    (void)state;
    assert_non_null(self);
    assert_int_equal(access(self, X_OK), 0);
    assert_true(ferry_str_ends(up, "/../x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_checked_in_one_order),
        cmocka_unit_test(roots),
        cmocka_unit_test(one_process_per_root),
        cmocka_unit_test(places_beside_this_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
