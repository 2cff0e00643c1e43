/* Tables for what QEMU is told of the path (strategy_switchover.c), through strategy_decide(). */
#include "lib/unit.h"

#include <inttypes.h>

#include "launcher/strategy/strategy.h"

#define MIB (INT64_C(1) << 20)

enum { STEPS_MAX = 9, KEEP = -1 };

/* One look, a second after the one before. */
struct step {
    int64_t mib_per_s;  /* measured just now; 0 = nothing new */
    int64_t tells;      /* what QEMU is told, in MiB/s; KEEP */
    bool away, failed;  /* the path is away; QEMU refused the last action */
    bool quiet, aborts; /* no job; an abort is on its way */
    enum wire_mode mode;
};

struct bandwidth_case {
    const char *name;
    bool kubevirt;
    int64_t from_start_mib;
    int n;
    struct step steps[STEPS_MAX];
};

static const struct bandwidth_case cases[] = {
    {"three that agree: the least of them",
     false,
     0,
     4,
     {{50, KEEP}, {48, KEEP}, {52, 48}, {50, KEEP}}},
    {"two are not enough", false, 0, 2, {{50, KEEP}, {50, KEEP}}},
    {"they agree within a quarter, not beyond",
     false,
     0,
     4,
     {{40, KEEP}, {51, KEEP}, {45, KEEP}, {50, 45}}},
    {"the first ones of a slow start pass",
     false,
     0,
     6,
     {{5, KEEP}, {20, KEEP}, {45, KEEP}, {50, KEEP}, {50, 45}, {50, KEEP}}},
    {"a slower path, at once: its own estimate, and then the new rate",
     false,
     0,
     6,
     {{50, KEEP}, {50, KEEP}, {50, 50}, {30, 0}, {30, KEEP}, {30, 30}}},
    {"a little slower or faster changes nothing",
     false,
     0,
     6,
     {{50, KEEP}, {50, KEEP}, {50, 50}, {42, KEEP}, {58, KEEP}, {60, KEEP}}},
    {"a faster path, when three say so",
     false,
     0,
     6,
     {{40, KEEP}, {40, KEEP}, {40, 40}, {80, KEEP}, {80, KEEP}, {80, 80}}},
    {"none comes any more: its own estimate",
     false,
     0,
     7,
     {{50, KEEP}, {50, KEEP}, {50, 50}, {0, KEEP}, {0, KEEP}, {0, 0}, {0, KEEP}}},
    {"the path goes away, and is measured anew when it is back",
     false,
     0,
     7,
     {{50, KEEP}, {50, KEEP}, {50, 50}, {0, 0, .away = true}, {50, KEEP}, {50, KEEP}, {50, 50}}},
    {"a QEMU that refuses is not asked again",
     false,
     0,
     5,
     {{50, KEEP}, {50, KEEP}, {50, 50}, {50, KEEP, .failed = true}, {90, KEEP}}},
    {"nothing is told in post-copy, when paused, aborting or before the job",
     false,
     0,
     7,
     {{50, KEEP},
      {50, KEEP},
      {50, KEEP, .mode = MODE_POST_COPY},
      {50, KEEP, .mode = MODE_PAUSED},
      {50, KEEP, .aborts = true},
      {50, KEEP, .quiet = true},
      {50, 50}}},
    {"what it was told at the start is corrected",
     false,
     100,
     4,
     {{50, 0}, {50, KEEP}, {50, 50}, {50, KEEP}}},
    {"what it was told at the start holds while nobody measures",
     false,
     100,
     2,
     {{0, KEEP}, {0, KEEP}}},
    {"the strategy kubevirt tells nothing", true, 0, 3, {{50, KEEP}, {50, KEEP}, {50, KEEP}}},
};

static void run_case(const struct bandwidth_case *c)
{
    struct strategy_memory memory = {0};
    struct wire_options policy = {.strategy =
                                      c->kubevirt ? WIRE_STRATEGY_KUBEVIRT : WIRE_STRATEGY_FERRY,
                                  .max_downtime_ms = 300,
                                  .path_bytes_per_s = c->from_start_mib * MIB};
    int64_t rate = 0, measured_ms = 0;

    for (int i = 0; i < c->n; i++) {
        const struct step *s = &c->steps[i];
        int64_t at_ms = 1000 * (i + 1);
        struct strategy_decision d;

        rate = s->mib_per_s ? s->mib_per_s * MIB : rate;
        measured_ms = s->mib_per_s ? at_ms - 100 : measured_ms;
        strategy_decide(&(struct strategy_input){.policy = &policy,
                                                 .data_bytes = 1024 * MIB,
                                                 .elapsed_ms = at_ms,
                                                 .mode = s->mode ? s->mode : MODE_PRE_COPY,
                                                 .aborting = s->aborts,
                                                 .path_away = s->away,
                                                 .last_failed = s->failed,
                                                 .path_bytes_per_s = rate,
                                                 .path_measured_ms = measured_ms,
                                                 .sample = {.present = true,
                                                            .active = !s->quiet,
                                                            .remaining_bytes = 900 * MIB,
                                                            .processed_bytes = at_ms,
                                                            .iteration = 1}},
                        &memory, &d);
        int64_t told = d.action == STRATEGY_SET_SWITCHOVER ? d.bytes_per_s / MIB : KEEP;
        if (told != s->tells || (told == KEEP && d.action != STRATEGY_KEEP) ||
            (told != KEEP && !d.why[0])) {
            fail_msg("%s, step %d: %s %" PRId64 " (%s)", c->name, i, strategy_action_name(d.action),
                     d.bytes_per_s / MIB, d.why);
        }
    }
}

static void bandwidth(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_case(&cases[i]);
    }
}

/* A downtime that has to be set comes first; the path's rate is told at the next look. */
static void more_urgent_first(void **state)
{
    struct strategy_memory memory = {0};
    struct wire_options policy = {.max_downtime_ms = 100};
    enum strategy_action seen[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct strategy_decision d;

        strategy_decide(&(struct strategy_input){.policy = &policy,
                                                 .mode = MODE_PRE_COPY,
                                                 .elapsed_ms = 1000 * (i + 1),
                                                 .path_bytes_per_s = 50 * MIB,
                                                 .path_measured_ms = 1000 * (i + 1),
                                                 .sample = {.present = true,
                                                            .active = i >= 2,
                                                            .remaining_bytes = 900 * MIB,
                                                            .processed_bytes = i,
                                                            .iteration = 1}},
                        &memory, &d);
        seen[i] = d.action;
    }
    assert_int_equal(seen[1], STRATEGY_KEEP);
    assert_int_equal(seen[2], STRATEGY_SET_DOWNTIME);
    assert_int_equal(seen[3], STRATEGY_SET_SWITCHOVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth),
        cmocka_unit_test(more_urgent_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
