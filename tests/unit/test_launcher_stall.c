/* The parts of KubeVirt's stall detection one by one: what is remembered from look to look. Numbers
 * of cases are items of docs/conformance.md. */
#include "lib/unit.h"

#include <inttypes.h>
#include <yyjson.h>

#include "launcher/strategy/strategy.h"

#define MIB (INT64_C(1) << 20)

static const char OPTIONS[] =
    "{\"strategy\":\"kubevirt\",\"allowPostCopy\":true,\"allowWorkloadDisruption\":true,"
    "\"completionTimeoutPerGiBS\":150,\"stallDetector\":{\"stallProgressTimeout\":40,"
    "\"switchoverTimeout\":60,\"stallMargin\":4,\"ewmaAlpha\":\"0.4\"}}";

static struct wire_options options_of(const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    struct wire_options o;
    struct ferry_error err = {0};

    if (wire_options_read(yyjson_doc_get_root(doc), &o, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    yyjson_doc_free(doc);
    o.stall.on = true;
    return o;
}

/* One look at round `iteration`. */
static enum strategy_action look(const struct wire_options *policy, struct strategy_memory *m,
                                 int64_t at_ms, int64_t remaining_mib, int64_t iteration)
{
    struct strategy_decision d;

    strategy_decide(&(struct strategy_input){.policy = policy,
                                             .mode = MODE_PRE_COPY,
                                             .data_bytes = 1000000000,
                                             .elapsed_ms = at_ms,
                                             .sample = {.present = true,
                                                        .active = true,
                                                        .remaining_bytes = remaining_mib * MIB,
                                                        .iteration = iteration,
                                                        .bytes_per_s = 10 * MIB}},
                    m, &d);
    assert_int_equal(d.why[0] != '\0', d.action != STRATEGY_KEEP); /* 250: nothing is asked for */
    return d.action;
}

/* A move whose detector knows the path. */
static struct strategy_memory begun(const struct wire_options *policy)
{
    struct strategy_memory m = {0};

    assert_int_equal(look(policy, &m, 400, 900, 1), STRATEGY_SET_DOWNTIME);
    assert_int_equal(look(policy, &m, 800, 900, 1), STRATEGY_KEEP);
    return m;
}

/* 280, 220 */
static void options_reach_the_detector(void **state)
{
    struct wire_options o = options_of(
        "{\"strategy\":\"kubevirt\",\"stallDetector\":{\"ewmaAlpha\":\"0.5\",\"stallMargin\":7,"
        "\"stallProgressTimeout\":11,\"switchoverTimeout\":13}}");
    struct strategy_memory m = begun(&o);

    (void)state;
    assert_int_equal(o.stall.progress_timeout_s, 11);
    assert_int_equal(o.stall.switchover_timeout_s, 13);
    assert_int_equal(o.stall.margin_percent, 7);
    m.kubevirt.bandwidth = 30.0 * MIB;
    look(&o, &m, 1200, 900, 1);
    assert_true(m.kubevirt.bandwidth == 20.0 * MIB);
}

/* 222, 223, 224 */
static void records_within_the_window(void **state)
{
    struct wire_options o = options_of(OPTIONS);
    struct strategy_memory m = begun(&o);
    const struct strategy_kubevirt *k = &m.kubevirt;

    (void)state;
    look(&o, &m, 10000, 100, 2);
    look(&o, &m, 20000, 110, 3); /* preceded by a smaller one: skipped */
    assert_int_equal(k->n_candidates, 1);
    look(&o, &m, 30000, 90, 4);
    assert_int_equal(k->n_candidates, 2);
    assert_int_equal(k->min_outside, 0);
    look(&o, &m, 51000, 80, 5); /* the first is out of the window */
    assert_int_equal(k->min_outside, 100 * MIB);
    assert_int_equal(k->candidates[0].remaining, 90 * MIB);
    assert_int_equal(k->n_candidates, 2);
}

/* 228, 229, 234, 235 */
static void a_stall_and_its_best_value(void **state)
{
    struct wire_options o = options_of(OPTIONS), wide = o;
    struct strategy_memory m = begun(&o), other;

    (void)state;
    wide.stall.margin_percent = 30;
    o.stall.search_minima = wide.stall.search_minima = true;
    other = m;
    look(&o, &m, 10000, 100, 2);
    look(&wide, &other, 10000, 100, 2);
    look(&o, &m, 30000, 95, 3);
    look(&wide, &other, 30000, 95, 3);
    look(&o, &m, 51000, 94, 4); /* less by more than 4 percent than what is out of the window */
    assert_false(m.kubevirt.stalled);
    look(&wide, &other, 51000, 94, 4);
    assert_true(other.kubevirt.stalled);
    look(&o, &m, 75000, 120, 5);
    assert_true(m.kubevirt.stalled);
    assert_int_equal(m.kubevirt.best, 94 * MIB);
    look(&o, &m, 76000, 50, 6); /* whatever comes: it has stalled */
    assert_true(m.kubevirt.stalled);
}

/* 231, 232 */
static void no_patience(void **state)
{
    struct wire_options o = options_of(OPTIONS);

    (void)state;
    o.stall.progress_timeout_s = 0;
    o.stall.search_minima = true;
    struct strategy_memory m = begun(&o);
    m.kubevirt.acceptable_ms = 1; /* nothing can finish in time, so nothing is done */
    m.kubevirt.switchover_deadline_ms = INT64_MAX / 4;
    look(&o, &m, 1000, 100, 2);
    look(&o, &m, 2000, 120, 3);
    assert_true(m.kubevirt.stalled);
    assert_int_equal(m.kubevirt.patience_ms, 0);
    assert_int_equal(m.kubevirt.n_history, 0); /* taken at once, */
    assert_int_equal(m.kubevirt.best, 120 * MIB);
    look(&o, &m, 3000, 140, 4); /* and at each look */
    assert_int_equal(m.kubevirt.n_history, 0);
    assert_int_equal(m.kubevirt.best, 140 * MIB);
}

static void whether_it_can_finish(void **state)
{
    static const struct {
        const char *name;
        int64_t remaining_mib, bandwidth_mib, acceptable_ms;
        bool can;
    } cases[] = {
        {"261 no bandwidth; 266 no estimate without one", 100, 0, 150000, false},
        {"262 fits into what is left", 100, 10, 150000, true},
        {"268 just so: 10 s of 10 s", 100, 10, 80000 / 2, true},
        {"268 just not so", 101, 10, 80000 / 2, false},
        {"264 beyond the deadline", 100, 10, 20000, false},
        {"265 no time needed; 267 nothing remains", 0, 10, 80000 / 2, true},
    };
    struct wire_options o = options_of(OPTIONS);

    (void)state;
    o.stall.search_minima = false;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct strategy_memory m = begun(&o);

        m.kubevirt.stalled = true;
        m.kubevirt.best = 1000 * MIB;
        m.kubevirt.acceptable_ms = cases[i].acceptable_ms;
        m.kubevirt.switchover_deadline_ms = INT64_MAX / 4;
        m.kubevirt.bandwidth = (double)(cases[i].bandwidth_mib * MIB);
        enum strategy_action a = look(&o, &m, 70000, cases[i].remaining_mib, 2);
        if ((a == STRATEGY_POST_COPY) != cases[i].can) {
            fail_msg("%s: %s", cases[i].name, strategy_action_name(a));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_reach_the_detector), cmocka_unit_test(records_within_the_window),
        cmocka_unit_test(a_stall_and_its_best_value), cmocka_unit_test(no_patience),
        cmocka_unit_test(whether_it_can_finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
