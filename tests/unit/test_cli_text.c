/* Tables for what the command line prints and creates. */
#include "lib/unit.h"

#include "api/wire/wire_result.h"
#include "base/error.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/session/call.h"
#include "cli/verbs/manifest.h"
#include "cli/verbs/verbs.h"
#include "cli/views/progress.h"
#include "cli/views/table.h"

#define MIB (INT64_C(1) << 20)

static void sizes_and_times(void **state)
{
    static const struct {
        int64_t value;
        const char *bytes, *duration, *age;
    } cases[] = {
        {0, "0 B", "0 ms", "0s"},
        {999, "999 B", "999 ms", "0s"},
        {1024, "1.0 KiB", "1.0 s", "1s"},
        {59999, "58.6 KiB", "59.9 s", "59s"},
        {60000, "58.6 KiB", "1 min 00 s", "60s"},
        {119999, "117.2 KiB", "1 min 59 s", "119s"},
        {120000, "117.2 KiB", "2 min 00 s", "2m"},
        {1048525, "1.0 MiB", "17 min 28 s", "17m"},
        {MIB, "1.0 MiB", "17 min 28 s", "17m"},
        {7200000, "6.9 MiB", "120 min 00 s", "2h"},
        {172800000, "164.8 MiB", "2880 min 00 s", "2d"},
        {1024 * MIB, "1.0 GiB", "17895 min 41 s", "12d"},
    };
    char buf[PROGRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_string_equal(progress_bytes(cases[i].value, buf), cases[i].bytes);
        assert_string_equal(progress_duration(cases[i].value, buf), cases[i].duration);
        assert_string_equal(progress_age(cases[i].value, buf), cases[i].age);
    }
}

static void time_left(void **state)
{
    static const struct {
        int64_t remaining, rate, dirty;
        const char *mode;
        int64_t low, high;
    } cases[] = {
        {0, 0, 0, "PreCopy", 0, 0},
        {100 * MIB, 0, 0, "PreCopy", PROGRESS_ETA_UNKNOWN, PROGRESS_ETA_UNKNOWN},
        {100 * MIB, 10 * MIB, 0, "PreCopy", 10, 10},
        {100 * MIB + 1, 10 * MIB, 0, "", 11, 11},
        {100 * MIB, 10 * MIB, 5 * MIB, "PreCopy", 10, 20},
        {100 * MIB, 10 * MIB, 10 * MIB, "PreCopy", 10, PROGRESS_ETA_NEVER},
        {100 * MIB, 10 * MIB, 11 * MIB, "", 10, PROGRESS_ETA_NEVER},
        {100 * MIB, 10 * MIB, 11 * MIB, "PostCopy", 10, 10}, /* nothing is sent twice */
        {100 * MIB, 10 * MIB, 11 * MIB, "Paused", 10, 10},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_progress s = {
            .remaining_bytes = cases[i].remaining,
            .bytes_per_s = cases[i].rate,
            .dirty_bytes_per_s = cases[i].dirty,
        };
        strcpy(s.mode, cases[i].mode);
        struct progress_band band = progress_eta(&s);

        assert_int_equal(band.low_s, cases[i].low);
        assert_int_equal(band.high_s, cases[i].high);
    }
}

static void reports_are_read(void **state)
{
    static const char text[] =
        "{\"uid\": \"u1\", \"mode\": \"PreCopy\", \"elapsedMs\": 1200, \"totalBytes\": 134217728, "
        "\"processedBytes\": "
        "9, \"remainingBytes\": 1048576, \"bytesPerS\": 2.5e6, \"dirtyBytesPerS\": -3, "
        "\"iteration\": 2, \"unknown\": {}}";
    struct wire_progress s;
    struct wire_result r;

    (void)state;
    assert_true(wire_progress_read(text, &s));
    assert_string_equal(s.uid, "u1");
    assert_string_equal(s.mode, "PreCopy");
    assert_int_equal(s.total_bytes, 134217728);
    assert_int_equal(s.bytes_per_s, 2500000);
    assert_int_equal(s.dirty_bytes_per_s, 0);
    assert_int_equal(s.throttle_percent, 0);
    assert_false(wire_progress_read("[1]", &s));
    assert_false(wire_progress_read("", &s));
    assert_true(wire_result_read("{\"downtimeMs\": 12}", &r));
    assert_int_equal(r.downtime_ms, 12);
    assert_int_equal(r.total_ms, -1);
}

static void progress_lines(void **state)
{
    const struct wire_progress half = {.total_bytes = 128 * MIB,
                                       .remaining_bytes = 64 * MIB,
                                       .bytes_per_s = 32 * MIB,
                                       .dirty_bytes_per_s = 4 * MIB,
                                       .iteration = 1,
                                       .expected_downtime_ms = 300,
                                       .mode = "PreCopy"};
    const struct wire_progress late = {.total_bytes = 128 * MIB,
                                       .remaining_bytes = 64 * MIB,
                                       .bytes_per_s = 4 * MIB,
                                       .dirty_bytes_per_s = 4 * MIB,
                                       .mode = "PostCopy"};
    const struct wire_progress early = {.total_bytes = 128 * MIB,
                                        .remaining_bytes = 64 * MIB,
                                        .bytes_per_s = 4 * MIB,
                                        .dirty_bytes_per_s = 8 * MIB,
                                        .iteration = 1};
    const struct wire_progress stuck = {.total_bytes = 128 * MIB,
                                        .remaining_bytes = 64 * MIB,
                                        .bytes_per_s = 4 * MIB,
                                        .dirty_bytes_per_s = 4 * MIB,
                                        .iteration = 3,
                                        .throttle_percent = 20,
                                        .mode = "PreCopy"};
    const struct wire_progress cut = {
        .total_bytes = 128 * MIB, .remaining_bytes = 64 * MIB, .iteration = 1, .path_away = true};
    const struct {
        const char *phase;
        const struct wire_progress *sample;
        int width;
        const char *line;
    } cases[] = {
        {"", NULL, 0, "Pending"},
        {NULL, NULL, 0, "Pending"},
        {"Scheduling", NULL, 80, "Scheduling"},
        {"PreparingTarget", NULL, 0, "PreparingTarget"},
        {"Running", &half, 0,
         "Running          remaining 64.0 MiB of 128.0 MiB  ETA 2 s to 3 s  rate 32.0 MiB/s  dirty "
         "4.0 MiB/s  round 1  downtime 300 ms"},
        {"Running", &stuck, 0,
         "Running          remaining 64.0 MiB of 128.0 MiB  ETA none at this rate  rate 4.0 MiB/s  "
         "dirty 4.0 MiB/s  round 3  throttled 20%"},
        {"Running", &late, 0,
         "Running          remaining 64.0 MiB of 128.0 MiB  ETA 16 s  rate 4.0 MiB/s  dirty 4.0 "
         "MiB/s  PostCopy"},
        {"Running", &early, 0,
         "Running          remaining 64.0 MiB of 128.0 MiB  ETA over 16 s  rate 4.0 MiB/s  dirty "
         "8.0 MiB/s  round 1"},
        {"Running", &cut, 0,
         "Running          remaining 64.0 MiB of 128.0 MiB  path away: goes on when it is back  "
         "rate 0 B/s  dirty 0 B/s  round 1"},
        /* Where there is no room for all, whole items, the ones that matter first. */
        {"Running", &half, 79,
         "Running  64.0 MiB left  ETA 2 s to 3 s  rate 32.0 MiB/s  dirty 4.0 MiB/s"},
        {"Running", &half, 90,
         "Running  64.0 MiB left  ETA 2 s to 3 s  rate 32.0 MiB/s  dirty 4.0 MiB/s  round 1"},
        {"Running", &late, 60, "Running  64.0 MiB left  ETA 16 s  rate 4.0 MiB/s  PostCopy"},
        {"Running", &stuck, 79,
         "Running  64.0 MiB left  ETA none at this rate  rate 4.0 MiB/s  throttled 20%"},
        {"Running", &half, 40, "Running  64.0 MiB left  ETA 2 s to 3 s"},
        {"Running", &half, 39, "Running  64.0 MiB left  ETA 2 s to 3 s"},
        {"Running", &half, 37, "Running  64.0 MiB left"},
        {"Running", &half, 12, "Running"},
        {"Running", &half, 7, "Running"},
        {"Running", &half, 1, "R"},
        {"Running", &half, 150,
         "Running          [==========>         ]  remaining 64.0 MiB of 128.0 MiB  ETA 2 s to 3 s"
         "  rate 32.0 MiB/s  dirty 4.0 MiB/s  round 1  downtime 300 ms"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf b = {0};

        progress_line(cases[i].phase, cases[i].sample, cases[i].width, &b);
        assert_string_equal(b.data, cases[i].line);
    }
}

static void tables_line_up(void **state)
{
    cli_table_cleanup struct cli_table t;
    ferry_cleanup_buf struct ferry_buf b = {0};

    (void)state;
    cli_table_init(&t, (const char *const[]){"NAME", "NODE", "AGE", NULL});
    cli_table_row(&t, (const char *const[]){"a", NULL, "5s"});
    cli_table_row(&t, (const char *const[]){"a-long-one", "node1", ""});
    cli_table_render(&t, &b);
    assert_string_equal(b.data, "NAME         NODE    AGE\n"
                                "a            -       5s\n"
                                "a-long-one   node1   -\n");
}

/* Each as the first cell, before one that must begin at the same place: where, and what is shown.
 */
static void tables_count_places_not_bytes(void **state)
{
    static const struct {
        const char *cell, *line;
    } cases[] = {
        {"plain", "plain             |\n"},
        {"caf\xc3\xa9", "caf\xc3\xa9              |\n"},
        {"e\xcc\x81t\xc3\xa9", "e\xcc\x81t\xc3\xa9               |\n"},
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac              |\n"},
        {"\x1b[31mred", "\\u001b[31mred     |\n"},
        {"two\nlines", "two\\u000alines    |\n"},
        {"\xc2\x9b"
         "31m",
         "\\u009b31m         |\n"},
        {"bad\xff", "bad\\u00ff         |\n"},
        {"as wide as that", "as wide as that   |\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cli_table_cleanup struct cli_table t;
        ferry_cleanup_buf struct ferry_buf b = {0};

        cli_table_init(&t, (const char *const[]){"THIS IS AS WIDE", "B", NULL});
        cli_table_row(&t, (const char *const[]){cases[i].cell, "|"});
        cli_table_render(&t, &b);
        const char *second = strchr(b.data, '\n') + 1;
        assert_string_equal(second, cases[i].line);
    }
}

/* Where the terminal is narrow; and where there is nothing to show the headers stand. */
static void tables_are_never_cut(void **state)
{
    static const char wide[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789";
    cli_table_cleanup struct cli_table t, empty;
    ferry_cleanup_buf struct ferry_buf b = {0};

    (void)state;
    setenv("COLUMNS", "20", 1);
    cli_table_init(&t, (const char *const[]){"A", "B", NULL});
    cli_table_row(&t, (const char *const[]){wide, wide});
    cli_table_render(&t, &b);
    unsetenv("COLUMNS");
    assert_int_equal(strlen(strchr(b.data, '\n') + 1), 2 * strlen(wide) + 4);
    cli_table_init(&empty, (const char *const[]){"A", "BCD", NULL});
    cli_table_render(&empty, &b);
    assert_true(ferry_str_ends(b.data, "\nA   BCD\n"));
}

static void nearest_words(void **state)
{
    static const char *const verbs[] = {"up", "down", "vm", "migrate", "list", "cancel"};
    static const struct {
        const char *word, *near;
    } cases[] = {
        {"migrat", "migrate"},
        {"migraet", "migrate"},
        {"migarte", "migrate"},
        {"lst", "list"},
        {"lists", "list"},
        {"cancle", "cancel"},
        {"don", "down"},
        {"can", "cancel"},
        {"vn", "vm"},
        {"frobnicate", NULL},
        {"xyz", NULL},
        {"", NULL},
        {"a-word-that-is-far-longer-than-any-verb-could-be", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *got = ferry_suggest(cases[i].word, verbs, COUNT_OF(verbs));

        if (!ferry_streq(got, cases[i].near)) {
            fail_msg("'%s': got %s", cases[i].word, got ? got : "nothing");
        }
    }
}

static void built_in_guest(void **state)
{
    static const struct {
        struct manifest_vm vm;
        const char *has; /* in the text, or in the error when it starts with '!' */
    } cases[] = {
        {{"demo", "128Mi", 4, 0, 0}, "\"kernelArgs\":\"ws=32 rate=4 hb=20 fill=rand cover=all\""},
        {{"demo", "128Mi", 0, 64, 50}, "ws=64 rate=0 hb=50"},
        {{"demo", "1Gi", 0, 0, 0}, "\"memory\":{\"guest\":\"1Gi\"}"},
        {{"demo", "64Mi", 1, 0, 0},
         "\"image\":\"ferry.io/builtin\",\"kernelPath\":\"/heartbeat.elf\""},
        {{"Demo", "64Mi", 1, 0, 0}, "!'Demo' cannot be the name"},
        {{"", "64Mi", 1, 0, 0}, "!'' cannot be the name"},
        {{"-x", "64Mi", 1, 0, 0}, "!'-x' cannot be the name"},
        {{"demo", "64Q", 1, 0, 0}, "!--memory"},
        {{"demo", "8Mi", 1, 0, 0}, "!too little"},
        {{"demo", "64Mi", 1, 60, 0}, "!at most 48"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_free char *text = NULL;
        struct ferry_error err = {0};
        int rc = manifest_vm(&cases[i].vm, &text, &err);
        bool wants_error = cases[i].has[0] == '!';
        const char *in = wants_error ? err.msg : text;

        assert_int_equal(rc, wants_error ? -FERRY_INVALID : 0);
        if (!strstr(in, cases[i].has + wants_error)) {
            fail_msg("case %zu: %s", i, in);
        }
    }
}

static void migration_objects(void **state)
{
    ferry_cleanup_free char *anywhere = manifest_migration("demo", NULL);
    ferry_cleanup_free char *there = manifest_migration("demo", "node2");

    (void)state;
    assert_string_equal(anywhere, "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                                  "\"VirtualMachineInstanceMigration\",\"metadata\":{"
                                  "\"generateName\":\"demo-\"},\"spec\":{\"vmiName\":\"demo\"}}");
    assert_non_null(strstr(there, "\"addedNodeSelector\":{\"kubernetes.io/hostname\":\"node2\"}"));
}

static void exit_codes(void **state)
{
    static const struct {
        enum ferry_class cls;
        int http, code;
    } cases[] = {
        {FERRY_INVALID, 0, 2},  {FERRY_INVALID, 422, 1}, {FERRY_NOT_FOUND, 404, 1},
        {FERRY_RETRY, 0, 1},    {FERRY_DENIED, 0, 1},    {FERRY_CANCELLED, 0, 130},
        {FERRY_CONFLICT, 0, 1}, {FERRY_FATAL, 0, 1},     {FERRY_PEER, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct ferry_error err = {.cls = cases[i].cls, .http = cases[i].http};

        assert_int_equal(cli_exit_code(&err), cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_times),      cmocka_unit_test(time_left),
        cmocka_unit_test(reports_are_read),     cmocka_unit_test(progress_lines),
        cmocka_unit_test(tables_line_up),       cmocka_unit_test(tables_count_places_not_bytes),
        cmocka_unit_test(tables_are_never_cut), cmocka_unit_test(nearest_words),
        cmocka_unit_test(built_in_guest),       cmocka_unit_test(migration_objects),
        cmocka_unit_test(exit_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
