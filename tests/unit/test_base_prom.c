/* Tables for src/base/prom.c. */
#include "lib/unit.h"

#include <math.h>

#include "base/prom.h"

static void samples(void **state)
{
    static const struct {
        const char *label;
        double value;
        const char *text;
    } cases[] = {
        {"a", 0, "x{l=\"a\",m=\"\"} 0\n"},
        {"a", 1, "x{l=\"a\",m=\"\"} 1\n"},
        {"a", -3, "x{l=\"a\",m=\"\"} -3\n"},
        {"a", 0.1, "x{l=\"a\",m=\"\"} 0.1\n"},
        {"a", 15.5, "x{l=\"a\",m=\"\"} 15.5\n"},
        {"a", 123456789012345, "x{l=\"a\",m=\"\"} 123456789012345\n"},
        {"a", 9007199254740992.0, "x{l=\"a\",m=\"\"} 9007199254740992\n"},
        {"a", 1e20, "x{l=\"a\",m=\"\"} 1e+20\n"},
        {"a", NAN, "x{l=\"a\",m=\"\"} nan\n"},
        {"", 1, "x{l=\"\",m=\"\"} 1\n"},
        {NULL, 1, "x{l=\"\",m=\"\"} 1\n"},
        {"say \"hi\"", 1, "x{l=\"say \\\"hi\\\"\",m=\"\"} 1\n"},
        {"a\\b\nc", 1, "x{l=\"a\\\\b\\nc\",m=\"\"} 1\n"},
        {"\\", 1, "x{l=\"\\\\\",m=\"\"} 1\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ferry_cleanup_buf struct ferry_buf out = {0};

        ferry_prom_sample(&out, "x", FERRY_LABELS({"l", cases[i].label}, {"m", ""}),
                          cases[i].value);
        assert_string_equal(out.data, cases[i].text);
    }
}

static void heads_and_times(void **state)
{
    ferry_cleanup_buf struct ferry_buf out = {0};

    (void)state;
    ferry_prom_head(&out, "x", "gauge", "What it is.");
    ferry_prom_sample(&out, "x", NULL, 2);
    ferry_prom_time(&out, "x", FERRY_LABELS({"end", "yes"}, {NULL, "not written"}), 1767225605000);
    assert_string_equal(out.data, "# HELP x What it is.\n# TYPE x gauge\n"
                                  "x 2\nx{end=\"yes\"} 1767225605.000\n");
}

static void histograms(void **state)
{
    static const double bounds[] = {0.001, 0.5, 10};
    static const unsigned long long buckets[] = {0, 2, 3};
    const struct ferry_prom_histogram h = {bounds, buckets, COUNT_OF(bounds), 4, 31.25};
    ferry_cleanup_buf struct ferry_buf out = {0}, bare = {0};

    (void)state;
    ferry_prom_histogram(&out, "x", FERRY_LABELS({"q", "one"}), &h);
    assert_string_equal(out.data, "x_bucket{q=\"one\",le=\"0.001\"} 0\n"
                                  "x_bucket{q=\"one\",le=\"0.5\"} 2\n"
                                  "x_bucket{q=\"one\",le=\"10\"} 3\n"
                                  "x_bucket{q=\"one\",le=\"+Inf\"} 4\n"
                                  "x_sum{q=\"one\"} 31.25\nx_count{q=\"one\"} 4\n");
    ferry_prom_histogram(&bare, "x", NULL, &(struct ferry_prom_histogram){.count = 1, .sum = 2});
    assert_string_equal(bare.data, "x_bucket{le=\"+Inf\"} 1\nx_sum 2\nx_count 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),
        cmocka_unit_test(heads_and_times),
        cmocka_unit_test(histograms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
