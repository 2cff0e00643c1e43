/* Flight records as people read them, and the charts. */
#include "lib/unit.h"

#include "api/object.h"
#include "cli/views/flight.h"
#include "cli/views/plan_text.h"
#include "cli/views/plot.h"

static const char record[] =
    "{\"time\":\"2026-11-15T15:00:00.000000Z\",\"type\":\"start\",\"guestBytes\":100663296,"
    "\"options\":{\"strategy\":\"ferry\",\"allowPostCopy\":true}}\n"
    "{\"time\":\"2026-11-15T15:00:00.400000Z\",\"type\":\"sample\",\"totalBytes\":0,"
    "\"processedBytes\":0,\"remainingBytes\":0,\"iteration\":0}\n"
    "{\"time\":\"2026-11-15T15:00:01.000000Z\",\"type\":\"sample\",\"totalBytes\":100663296,"
    "\"processedBytes\":1048576,\"remainingBytes\":99614720,\"bytesPerS\":0,\"iteration\":1,"
    "\"expectedDowntimeMs\":300}\n"
    "{\"time\":\"2026-11-15T15:00:05.000000Z\",\"type\":\"sample\",\"totalBytes\":100663296,"
    "\"processedBytes\":67108864,\"remainingBytes\":33554432,\"bytesPerS\":16777216,"
    "\"iteration\":1,\"expectedDowntimeMs\":300}\n"
    "{\"time\":\"2026-11-15T15:00:07.000000Z\",\"type\":\"sample\",\"totalBytes\":100663296,"
    "\"processedBytes\":100663296,\"remainingBytes\":16777216,\"bytesPerS\":16777216,"
    "\"dirtyBytesPerS\":8388608,\"iteration\":2,\"throttlePercent\":20}\n"
    "{\"time\":\"2026-11-15T15:00:07.500000Z\",\"type\":\"path\",\"text\":\"away\"}\n"
    "{\"time\":\"2026-11-15T15:00:08.000000Z\",\"type\":\"decision\",\"action\":\"post-copy\","
    "\"text\":\"it dirties 8 MiB/s\"}\n"
    "not json\n{\"type\":\"news\",\"text\":\"of a later version\"}\n{\"no\":\"type\"}\n"
    "{\"time\":\"2026-11-15T15:00:10.000000Z\",\"type\":\"end\",\"phase\":\"succeeded\","
    "\"failureReason\":\"\",\"downtimeMs\":120}\n";

static void a_record_is_rounds_and_reasons(void **state)
{
    flight_cleanup struct flight f = {0};
    ferry_cleanup_buf struct ferry_buf out = {0};
    static const char want[] =
        "Rounds:\n"
        "ROUND   FROM    TOOK    SENT       REMAINS    RATE/S     DIRTY/S   DOWNTIME   THROTTLE\n"
        "1       1.0 s   6.0 s   64.0 MiB   32.0 MiB   16.0 MiB   -         300 ms     -\n"
        "2       7.0 s   3.0 s   32.0 MiB   16.0 MiB   16.0 MiB   8.0 MiB   -          20 %\n"
        "\n"
        "Record:\n"
        "        0 ms  start: guest of 96.0 MiB, strategy ferry, post-copy allowed\n"
        "       7.5 s  path: away\n"
        "       8.0 s  post-copy: it dirties 8 MiB/s\n"
        "       8.0 s  news: of a later version\n"
        "      10.0 s  succeeded, the guest stood for 120 ms\n";

    (void)state;
    assert_int_equal(flight_parse(record, sizeof(record) - 1, &f, NULL), 0);
    flight_render(&f, &out);
    assert_string_equal(out.data, want);
    assert_int_equal(f.n_samples, 4);
    assert_int_equal(f.last_ms, 10000);
}

static void a_record_that_is_none_is_refused(void **state)
{
    static const char *const texts[] = {"", "\n\n", "hello", "[]", "{}", "{\"type\":1}", "{\"ty"};
    struct ferry_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        flight_cleanup struct flight f = {0};

        assert_int_equal(flight_parse(texts[i], strlen(texts[i]), &f, &err), -FERRY_INVALID);
    }
}

static void a_clock_that_goes_back_does_not_matter(void **state)
{
    static const char text[] =
        "{\"time\":\"2026-11-15T15:00:05Z\",\"type\":\"note\",\"text\":\"a\"}\n"
        "{\"time\":\"2026-11-15T15:00:01Z\",\"type\":\"note\",\"text\":\"b\"}\n"
        "{\"type\":\"full\"}";
    flight_cleanup struct flight f = {0};

    (void)state;
    assert_int_equal(flight_parse(text, sizeof(text) - 1, &f, NULL), 0);
    assert_int_equal(f.entries[1].at_ms, 0);
    assert_true(f.cut);
}

static void times_fall_into_columns(void **state)
{
    static const struct {
        int64_t at, end;
        int columns, want;
    } cases[] = {
        {0, 100, 10, 0},   {9, 100, 10, 0},   {10, 100, 10, 1}, {99, 100, 10, 9},
        {100, 100, 10, 9}, {500, 100, 10, 9}, {-5, 100, 10, 0}, {7, 0, 10, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(plot_column(cases[i].at, cases[i].end, cases[i].columns), cases[i].want);
    }
}

static void a_chart_is_as_high_as_its_values(void **state)
{
    static const struct plot_point points[] = {{0, 60}, {500, 30}, {900, 1}};
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)state;
    plot_render(&(struct plot){.title = "left",
                               .peak = "60",
                               .points = points,
                               .n_points = COUNT_OF(points),
                               .end_ms = 1000},
                0, PLOT_ASCII, &out);
    /* 27 columns: full until half a second, half of it, then next to nothing, which is seen. */
    assert_non_null(strstr(out.data, "        60 |#############              \n"));
    assert_non_null(strstr(out.data, "         0 |########################...\n"));
}

static void a_plot_has_charts_and_marks(void **state)
{
    flight_cleanup struct flight f = {0};
    ferry_cleanup_buf struct ferry_buf out = {0}, none = {0};

    (void)state;
    assert_int_equal(flight_parse(record, sizeof(record) - 1, &f, NULL), 0);
    flight_plot(&f, 60, PLOT_UNICODE, &out);
    assert_non_null(strstr(out.data, "remaining\n  95.0 MiB │"));
    assert_non_null(strstr(out.data, "dirtied per second\n   8.0 MiB │"));
    assert_non_null(strstr(out.data, "< P"));
    f.n_samples = 0;
    flight_plot(&f, 60, PLOT_ASCII, &none);
    assert_string_equal(none.data, "The record has no samples: nothing was sent.\n");
}

static void modes_have_a_beginning(void **state)
{
    static const char text[] =
        "{\"time\":\"2026-01-01T00:00:00Z\",\"type\":\"start\"}\n"
        "{\"time\":\"2026-01-01T00:00:03Z\",\"type\":\"decision\",\"action\":\"set-downtime\"}\n"
        "{\"time\":\"2026-01-01T00:00:05Z\",\"type\":\"decision\",\"action\":\"post-copy\"}\n";
    flight_cleanup struct flight f = {0};

    (void)state;
    assert_int_equal(flight_parse(text, sizeof(text) - 1, &f, NULL), 0);
    assert_int_equal(flight_mode_since(&f, "PreCopy"), 0);
    assert_int_equal(flight_mode_since(&f, "PostCopy"), 5000);
    assert_int_equal(flight_mode_since(&f, "Paused"), -1);
    assert_int_equal(flight_mode_since(&f, NULL), -1);
}

static void plans_in_words(void **state)
{
    static const struct {
        const char *json, *to, *policy;
        int64_t age_ms;
        const char *want;
    } cases[] = {
        {"{\"dataBytes\":134217728,\"dirtyBytesPerS\":8388608,\"pathBytesPerS\":16777216,"
         "\"pathMeasured\":true,\"low\":{\"end\":\"switch-over\",\"rounds\":2,\"totalMs\":9000,"
         "\"downtimeMs\":120},\"high\":{\"end\":\"post-copy\",\"rounds\":1,\"totalMs\":12000,"
         "\"downtimeMs\":40}}",
         "b", "slow", 5000,
         "move        vm: a to b\npolicy      slow\n"
         "guest       128.0 MiB to send, 8.0 MiB/s dirtied (sampled)\n"
         "accelerator tcg: it is emulated, here and there\n"
         "path        16.0 MiB/s (measured by earlier moves)\n"
         "at best     pre-copy in 2 rounds, 9.0 s; the guest stands still for 120 ms\n"
         "at worst    post-copy in 1 round, 12.0 s; the guest stands still for 40 ms\n"},
        {"{\"dataBytes\":1048576,\"dirtyBytesPerS\":0,\"pathBytesPerS\":1048576,"
         "\"low\":{\"end\":\"pause\",\"rounds\":3,\"totalMs\":1000,\"downtimeMs\":500},"
         "\"high\":{\"end\":\"abort\",\"rounds\":9,\"totalMs\":90000}}",
         NULL, NULL, -1,
         "move        vm: a to any node\npolicy      none: the site's settings\n"
         "guest       1.0 MiB to send, 0 B/s dirtied (sampled)\n"
         "accelerator kvm: it moves only to nodes whose hardware runs guests\n"
         "path        1.0 MiB/s (assumed: nothing was sent there lately)\n"
         "at best     paused to finish in 3 rounds, 1.0 s; the guest stands still for 500 ms\n"
         "at worst    it does not converge: given up after 1 min 30 s; a policy that allows "
         "auto-converge, post-copy or a pause would move it\n"},
        {"{\"low\":{\"end\":\"abort\",\"totalMs\":90000},\"high\":{\"end\":\"abort\",\"totalMs\":"
         "90000}}",
         "b", "slow", 14999,
         "move        vm: a to b\npolicy      slow\n"
         "guest       0 B to send, 0 B/s dirtied (sampled)\n"
         "accelerator tcg: it is emulated, here and there\n"
         "path        0 B/s (assumed: nothing was sent there lately)\n"
         "at best     it does not converge: given up after 1 min 30 s; a policy that allows "
         "auto-converge, post-copy or a pause would move it\n"
         "at worst    it does not converge: given up after 1 min 30 s; a policy that allows "
         "auto-converge, post-copy or a pause would move it\n"
         "but         it was started 14 s ago: one that still boots dirties more than it will "
         "later, so ask again\n"},
    };
    struct plan_text p;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf out = {0};

        assert_int_equal(plan_text_parse(cases[i].json, strlen(cases[i].json), &p, NULL), 0);
        plan_text_render(&p, "vm", "a", cases[i].to, cases[i].policy,
                         i == 1 ? ACCELERATOR_KVM : ACCELERATOR_TCG, cases[i].age_ms, &out);
        assert_string_equal(out.data, cases[i].want);
    }
    assert_true(plan_text_parse("{}", 2, &p, NULL) < 0);
    assert_true(plan_text_parse("x", 1, &p, NULL) < 0);
}

/* A guest that boots is no sample. */
static void plans_wait_for_the_boot(void **state)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"v\"},\"status\":{\"phaseTransitionTimestamps\":["
        "{\"phase\":\"Scheduled\",\"phaseTransitionTimestamp\":\"1970-01-01T00:01:38Z\"},"
        "{\"phase\":\"Running\",\"phaseTransitionTimestamp\":\"1970-01-01T00:01:40Z\"}]}}";
    static const char untold[] = "{\"metadata\":{\"name\":\"v\"},\"status\":{}}";
    static const struct {
        int64_t started, now, wait;
    } cases[] = {
        {100000, 100000, 10000}, {100000, 103000, 7000}, {100000, 110000, 0},
        {100000, 900000, 0},     {100000, 1000, 10000},  {0, 1000, 0},
    };
    api_cleanup_object struct api_object *vmi = NULL, *none = NULL;

    (void)state;
    assert_int_equal(api_object_parse(API_KIND_VMI, text, sizeof(text) - 1, &vmi, NULL), 0);
    assert_int_equal(plan_text_started_ms(vmi), 100000);
    assert_int_equal(api_object_parse(API_KIND_VMI, untold, sizeof(untold) - 1, &none, NULL), 0);
    assert_int_equal(plan_text_started_ms(none), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(plan_text_too_early_ms(cases[i].started, cases[i].now), cases[i].wait);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_rounds_and_reasons),
        cmocka_unit_test(a_record_that_is_none_is_refused),
        cmocka_unit_test(a_clock_that_goes_back_does_not_matter),
        cmocka_unit_test(times_fall_into_columns),
        cmocka_unit_test(a_chart_is_as_high_as_its_values),
        cmocka_unit_test(a_plot_has_charts_and_marks),
        cmocka_unit_test(plans_in_words),
        cmocka_unit_test(plans_wait_for_the_boot),
        cmocka_unit_test(modes_have_a_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
