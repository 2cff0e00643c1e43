/* When a pod is ready: what launchers answer, and what of it the pod's status says. */
#include "lib/unit.h"

#include "base/str.h"
#include "pods/pod_decide.h"
#include "pods/readiness_decide.h"

/* Answers in their order, '+' good and '-' bad; after each: 'R' ready, 'n' not, '?' not known; and
 * how long the next question waits. */
static void answers(void **state)
{
    static const struct {
        const char *name, *answers, *verdicts;
        int64_t pauses[8];
    } cases[] = {
        {"answers at once", "+", "R", {10000}},
        {"takes its time to start", "--+", "??R", {50, 100, 10000}},
        {"takes long to start", "------+", "??nnnnR", {50, 100, 200, 400, 800, 1000, 10000}},
        {"one bad answer is none", "+-+", "RRR", {10000, 1000, 10000}},
        {"nor are two", "+--+", "RRRR", {10000, 1000, 1000, 10000}},
        {"two, and two again", "+--+--", "RRRRRR", {10000, 1000, 1000, 10000, 1000, 1000}},
        {"three are", "+---", "RRRn", {10000, 1000, 1000, 200}},
        {"and it comes back", "+---+", "RRRnR", {10000, 1000, 1000, 200, 10000}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct readiness_state s = {0};
        int64_t now = 5000;

        print_message("  %s\n", cases[i].name);
        for (size_t k = 0; cases[i].answers[k]; k++) {
            bool was = s.ready;
            bool changed = readiness_decide(&s, cases[i].answers[k] == '+', now);

            assert_int_equal(changed, was != s.ready);
            assert_int_equal(!readiness_known(&s) ? '?'
                             : s.ready            ? 'R'
                                                  : 'n',
                             cases[i].verdicts[k]);
            assert_int_equal(s.next_ms - now, cases[i].pauses[k]);
            now = s.next_ms;
        }
    }
}

static void words(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nDate: now", true},
        {"HTTP/1.0 204 x", true},
        {"HTTP/1.1 399", true},
        {"HTTP/1.1 400 Bad", false},
        {"HTTP/1.1 503 Busy", false},
        {"HTTP/1.1 199 x", false},
        {"HTTP/1.1 ", false},
        {"", false},
        {"{\"pid\": 200}", false},
        {"HTTP/2 200 OK", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("  %s\n", cases[i].text);
        assert_int_equal(readiness_answer_good(cases[i].text), cases[i].good);
    }
}

static void said(void **state)
{
    static const struct {
        const char *name;
        bool was, known, ready, expected;
    } cases[] = {
        {"new", false, false, false, false},
        {"answers", false, true, true, true},
        {"does not answer any more", true, true, false, false},
        {"another agent said so, and nothing is known yet", true, false, false, true},
        {"another agent said not so, and nothing is known yet", false, false, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct api_pod pod = {.phase = "Running", .container_ready = cases[i].was};
        const struct pod_local local = {
            .sandbox = {SANDBOX_RUNNING}, .ready_known = cases[i].known, .ready = cases[i].ready};
        struct pod_report r = pod_decide(&pod, 30, &local, 1000000).report;

        print_message("  %s\n", cases[i].name);
        assert_int_equal(r.phase, PHASE_RUNNING);
        assert_true(r.running);
        assert_int_equal(r.ready, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(words),
        cmocka_unit_test(said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
