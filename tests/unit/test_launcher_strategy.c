/* Tables for strategy_decide(). Numbers of cases are items of docs/conformance.md. */
#include "lib/unit.h"

#include <inttypes.h>

#include "api/object.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/domain/smaps.h"
#include "launcher/move/dirty_limit.h"
#include "launcher/strategy/plan.h"
#include "launcher/strategy/strategy.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

enum { STEPS_MAX = 12 };

/* One look. Zero `at_ms` ends a case. */
struct step {
    int64_t at_ms, remaining_mib, iteration, mib_per_s;
    enum strategy_action action;
    int64_t downtime_ms;
    enum wire_mode mode;
    int64_t limit_mib;            /* that each vCPU may write */
    bool failed, blind, aborting; /* last action failed; no statistics; an abort is on its way */
};

struct strategy_case {
    const char *name;
    struct wire_options policy; /* on top of what `base` says */
    bool vfio;
    struct step steps[STEPS_MAX];
    int64_t limited_vcpus;
};

static void run_case(const struct strategy_case *c)
{
    struct strategy_memory memory = {0};
    struct strategy_decision d;

    for (int i = 0; i < STEPS_MAX && c->steps[i].at_ms; i++) {
        const struct step *s = &c->steps[i];
        struct strategy_input in = {
            .policy = &c->policy,
            .data_bytes = 1000000000, /* one giga: completionTimeoutPerGiB seconds in all */
            .elapsed_ms = s->at_ms,
            .mode = s->mode ? s->mode : MODE_PRE_COPY,
            .vfio = c->vfio,
            .limited_vcpus = c->limited_vcpus,
            .aborting = s->aborting,
            .last_failed = s->failed,
            .sample = {.present = !s->blind,
                       .active = !s->blind,
                       .remaining_bytes = s->remaining_mib * MIB,
                       /* some bytes always flow */
                       .processed_bytes =
                           c->limited_vcpus ? s->at_ms * s->mib_per_s * MIB / 1000 : s->at_ms,
                       .iteration = s->iteration,
                       .bytes_per_s = s->mib_per_s * MIB},
        };

        strategy_decide(&in, &memory, &d);
        if (d.action != s->action || d.downtime_ms != s->downtime_ms ||
            (d.action == STRATEGY_LIMIT_WRITES && d.bytes_per_s != s->limit_mib * MIB) ||
            (d.why[0] != '\0') != (d.action != STRATEGY_KEEP)) {
            fail_msg("%s, step %d: %s %" PRId64 " ms (%s)", c->name, i,
                     strategy_action_name(d.action), d.downtime_ms, d.why);
        }
    }
}

/* ---- kubevirt, legacy --------------------------------------------------------------------------
 */

#define LEGACY_TIMES                                                                               \
    .strategy = WIRE_STRATEGY_KUBEVIRT, .completion_timeout_per_gib_s = 150,                       \
    .progress_timeout_s = 50
#define LEGACY LEGACY_TIMES, .max_downtime_ms = 900
#define KEEP STRATEGY_KEEP
#define STUCK STRATEGY_ABORT_STUCK
#define NOT_CONVERGING STRATEGY_ABORT_NOT_CONVERGING

static void kubevirt_legacy(void **state)
{
    static const struct strategy_case cases[] = {
        {"302 no progress for progressTimeout",
         {LEGACY},
         false,
         {{1000, 100, 1, 1, KEEP},
          {40000, 100, 1, 1, KEEP},
          {51000, 100, 1, 1, KEEP},
          {51001, 100, 1, 1, STUCK}}},
        {"303 a failed abort is tried again",
         {LEGACY},
         false,
         {{1000, 100, 1, 1, KEEP},
          {52000, 100, 1, 1, STUCK},
          {52400, 100, 1, 1, KEEP, .aborting = true},
          {52800, 100, 1, 1, STUCK, .failed = true}}},
        {"304 statistics that always fail",
         {LEGACY},
         false,
         {{1000, .blind = true}, {50000, .blind = true}, {51001, .action = STUCK, .blind = true}}},
        {"progress is against the sample before: oscillation counts for ever",
         {LEGACY},
         false,
         {{1000, 100, 1, 1, KEEP},
          {40000, 120, 2, 1, KEEP},
          {50000, 110, 3, 1, KEEP},
          {90000, 130, 4, 1, KEEP},
          {99000, 120, 5, 1, KEEP},
          {149000, 130, 6, 1, KEEP},
          {151000, 90, 7, 1, NOT_CONVERGING}}},
        {"306 time exceeded, no disruption allowed",
         {LEGACY, .allow_post_copy = true},
         false,
         {{150000, 100, 1, 1, KEEP}, {150001, 90, 1, 1, NOT_CONVERGING}}},
        {"307 time exceeded, post-copy allowed",
         {LEGACY, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {{150000, 100, 1, 1, KEEP},
          {150001, 100, 1, 1, STRATEGY_POST_COPY},
          {999999, 100, 1, 1, KEEP, .mode = MODE_POST_COPY}}},
        {"308 post-copy fails at first",
         {LEGACY, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {{149000, 100, 1, 1, KEEP},
          {150001, 100, 1, 1, STRATEGY_POST_COPY},
          {150401, 100, 1, 1, STRATEGY_POST_COPY, .failed = true},
          {150801, 100, 1, 1, KEEP, .mode = MODE_POST_COPY}}},
        {"309 disruption without post-copy: paused",
         {LEGACY, .allow_workload_disruption = true},
         false,
         {{140000, 100, 1, 1, KEEP},
          {150001, 90, 1, 1, STRATEGY_PAUSE},
          {200000, 80, 1, 1, KEEP, .mode = MODE_PAUSED},
          {240000, 70, 1, 1, KEEP, .mode = MODE_PAUSED},
          {280000, 60, 1, 1, KEEP, .mode = MODE_PAUSED},
          {300000, 50, 1, 1, KEEP, .mode = MODE_PAUSED},
          /* 310 not in doubled time either */
          {300001, 40, 1, 1, NOT_CONVERGING, .mode = MODE_PAUSED}}},
        {"248 VFIO: QEMU's own switch-over instead of post-copy or a pause",
         {LEGACY, .allow_post_copy = true, .allow_workload_disruption = true},
         true,
         {{149000, 100, 1, 1, KEEP},
          {150001, 100, 1, 1, STRATEGY_FORCE, 300000},
          {150401, 90, 1, 1, KEEP, .mode = MODE_PAUSED}}},
        {"limits of 0 are none",
         {.strategy = WIRE_STRATEGY_KUBEVIRT, .allow_workload_disruption = true},
         false,
         {{1000, 100, 1, 1, KEEP}, {INT64_C(1) << 40, 100, 1, 1, KEEP}}},
        {"286 no tuning options, no tuning", {LEGACY}, false, {{1000, 100, 5, 1, KEEP}}},
        {"288 tuning: initial, start iteration, steps, cooldown, ceiling",
         {LEGACY,
          .tuning =
              {.on = true, .initial_ms = 150, .steps = 3, .start_iteration = 3, .cooldown_s = 10}},
         false,
         {{400, .blind = true},
          {800, 100, 1, 1, STRATEGY_SET_DOWNTIME, 150},
          {1200, .blind = true},   /* 289 */
          {20000, 90, 2, 1, KEEP}, /* 290 */
          {21000, 80, 3, 1, STRATEGY_SET_DOWNTIME, 400},
          {22000, 70, 4, 1, KEEP}, /* 292 */
          {31000, 60, 4, 1, STRATEGY_SET_DOWNTIME, 650},
          {31400, 50, 4, 1, KEEP, .failed = true}, /* unchanged: waits its time, tries again */
          {41001, 45, 4, 1, STRATEGY_SET_DOWNTIME, 650},
          {52000, 40, 5, 1, STRATEGY_SET_DOWNTIME, 900},
          {63000, 30, 6, 1, KEEP}}}, /* 291 */
        {"tuning never exceeds maxDowntimeMs",
         {LEGACY_TIMES, .max_downtime_ms = 100,
          .tuning = {.on = true, .initial_ms = 150, .steps = 7, .cooldown_s = 1}},
         false,
         {{800, 100, 1, 1, STRATEGY_SET_DOWNTIME, 100}, {9000, 80, 9, 1, KEEP}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_case(&cases[i]);
    }
}

/* ---- kubevirt, stall detection -----------------------------------------------------------------
 */

#define STALL_OPTIONS                                                                              \
    .on = true, .margin_percent = 4, .progress_timeout_s = 40, .switchover_timeout_s = 60,         \
    .ewma_alpha = 0.4, .possible_factor = 1.5, .decay = 0.5, .completion_factor = 2
#define STALL LEGACY, .stall = {STALL_OPTIONS, .search_minima = true}
#define FIRST                                                                                      \
    {                                                                                              \
        400, 900, 1, 10, STRATEGY_SET_DOWNTIME, 300                                                \
    }
#define RATE(at, rate)                                                                             \
    {                                                                                              \
        at, 900, 1, rate, KEEP                                                                     \
    }

static void kubevirt_stall(void **state)
{
    static const struct strategy_case cases[] = {
        {"212 missing statistics", {STALL}, false, {{400, .blind = true}, {800, .blind = true}}},
        {"213 maxDowntime below 300",
         {LEGACY_TIMES, .max_downtime_ms = 120, .stall = {STALL_OPTIONS, .search_minima = true}},
         false,
         {{400, 900, 1, 10, STRATEGY_SET_DOWNTIME, 120}, {800, 900, 1, 10, KEEP}}},
        {"214 maxDowntime above 300", {STALL}, false, {FIRST, {800, 900, 1, 10, KEEP}}},
        {"the initial downtime is tried until it is taken",
         {STALL},
         false,
         {FIRST,
          {800, 900, 1, 10, STRATEGY_SET_DOWNTIME, 300, .failed = true},
          {1200, 900, 1, 10, KEEP}}},
        {"218 the legacy path is not taken: no progress limit",
         {STALL},
         false,
         {FIRST, {70000, 900, 1, 10, KEEP}, {149000, 900, 1, 10, KEEP}}},
        {"225 no min outside the window; 224 it ages; 243 post-copy",
         {STALL, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {10000, 100, 2, 10, KEEP},
          {20000, 101, 3, 10, KEEP},
          {40000, 100, 4, 10, KEEP},
          {50000, 100, 5, 10, STRATEGY_POST_COPY},
          {50400, 100, 5, 10, KEEP, .mode = MODE_POST_COPY},
          {400000, 100, 5, 10, KEEP, .mode = MODE_POST_COPY}}}, /* 271 */
        {"226 enough progress: not stalled",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {10000, 100, 2, 10, KEEP},
          {30000, 90, 3, 10, KEEP},
          {55000, 80, 4, 10, KEEP},
          {75000, 70, 5, 10, KEEP}}},
        {"237 no bandwidth, no stall; 278 abort at the timeout",
         {STALL, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {{400, 900, 1, 0, STRATEGY_SET_DOWNTIME, 300},
          {10000, 100, 2, 0, KEEP},
          {60000, 100, 3, 0, KEEP},
          {150001, 100, 3, 0, NOT_CONVERGING}}},
        {"240 not at a local minimum; 230 best is relaxed step by step; 249 then an action",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {45000, 150, 3, 10, KEEP}, /* stalled, far above the best */
          {60000, 120, 4, 10, KEEP},
          {85000, 130, 5, 10, KEEP}, /* patience of 40 s is over: best becomes 120 */
          {95000, 122, 6, 10, STRATEGY_FORCE, 2000000}}}, /* 244, 254 */
        {"241 minima are not searched for",
         {LEGACY, .allow_workload_disruption = true, .stall = {STALL_OPTIONS}},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {45000, 150, 3, 10, STRATEGY_FORCE, 2000000}}},
        {"242 it cannot finish by the deadline",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 1),
          {5000, 400, 2, 1, KEEP},
          {45000, 400, 3, 1, KEEP},
          {90000, 400, 4, 1, KEEP}}},
        {"246 near the allowed downtime: soft; 255 the configured one; 277 then abort",
         {STALL},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 13, 2, 10, KEEP},
          {45000, 13, 3, 10, STRATEGY_SET_DOWNTIME, 900},
          {50000, 13, 4, 10, KEEP},  /* 236 */
          {105000, 13, 5, 10, KEEP}, /* 217: the switch-over's deadline */
          {105001, 13, 5, 10, NOT_CONVERGING}}},
        {"247 far above: abort",
         {STALL},
         false,
         {FIRST, RATE(800, 10), {5000, 100, 2, 10, KEEP}, {45000, 100, 3, 10, NOT_CONVERGING}}},
        {"248 VFIO: hard stop instead of post-copy",
         {STALL, .allow_post_copy = true, .allow_workload_disruption = true},
         true,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {45000, 100, 3, 10, STRATEGY_FORCE, 2000000}}},
        {"253 post-copy fails: the mark is cleared, the next round tries again",
         {STALL, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {45000, 100, 3, 10, STRATEGY_POST_COPY},
          {45400, 100, 3, 10, KEEP, .failed = true},
          {50000, 100, 4, 10, STRATEGY_POST_COPY}}},
        {"256 a hard stop that is refused: likewise",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {45000, 100, 3, 10, STRATEGY_FORCE, 2000000},
          {45400, 100, 3, 10, KEEP, .failed = true},
          {50000, 100, 4, 10, STRATEGY_FORCE, 2000000}}},
        {"238 a zero progress timeout finds a stall at the next round",
         {LEGACY, .allow_workload_disruption = true,
          .stall = {.on = true,
                    .margin_percent = 4,
                    .ewma_alpha = 0.4,
                    .possible_factor = 1.5,
                    .completion_factor = 2,
                    .search_minima = true}},
         false,
         {FIRST,
          RATE(800, 10),
          {5000, 100, 2, 10, KEEP},
          {6000, 100, 3, 10, STRATEGY_FORCE, 2000000}}},
        {"270 in time; 272 the timeout, post-copy allowed",
         {STALL, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {150000, 100, 1, 10, KEEP},
          {150001, 100, 1, 10, STRATEGY_POST_COPY}}},
        {"273 disruption allowed; 274 the time grows; 216 paused: the acceptable time",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {150001, 100, 1, 10, STRATEGY_FORCE, 2000000},
          {220000, 90, 1, 10, KEEP, .mode = MODE_PAUSED},
          {300000, 90, 1, 10, KEEP, .mode = MODE_PAUSED},
          {300001, 90, 1, 10, NOT_CONVERGING, .mode = MODE_PAUSED}}},
        {"276 neither allowed",
         {STALL},
         false,
         {FIRST, RATE(800, 10), {150001, 100, 1, 10, NOT_CONVERGING}}},
        {"279 setting the downtime keeps failing: in the end abort",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST,
          RATE(800, 10),
          {150001, 100, 1, 10, STRATEGY_FORCE, 2000000},
          {150401, 100, 1, 10, KEEP, .failed = true},
          {210002, 100, 1, 10, STRATEGY_FORCE, 2000000},
          {210402, 100, 1, 10, KEEP, .failed = true},
          {1300000, 100, 1, 10, NOT_CONVERGING}}},
        {"an abort on its way: nothing",
         {STALL, .allow_workload_disruption = true},
         false,
         {FIRST, RATE(800, 10), {150001, 100, 1, 10, KEEP, .aborting = true}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_case(&cases[i]);
    }
}

static void kubevirt_bandwidth(void **state)
{
    struct wire_options policy = {STALL};
    struct strategy_memory memory = {0};
    struct strategy_decision d;
    static const int64_t rates[] = {0, 100, 200, 50};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        strategy_decide(&(struct strategy_input){.policy = &policy,
                                                 .mode = MODE_PRE_COPY,
                                                 .elapsed_ms = 400 * (int64_t)(i + 1),
                                                 .sample = {.present = true,
                                                            .active = true,
                                                            .iteration = i > 0,
                                                            .bytes_per_s = rates[i]}},
                        &memory, &d);
        if (i == 1) {
            assert_true(memory.kubevirt.bandwidth == 0); /* a boundary does not feed it */
            memory.kubevirt.bandwidth = 100;             /* 219 the first initialises */
        }
    }
    /* 219: 100, then 0.4 * 200 + 0.6 * 100 = 140, then 0.4 * 50 + 0.6 * 140 = 104 */
    assert_true(memory.kubevirt.bandwidth > 103.99 && memory.kubevirt.bandwidth < 104.01);
}

/* ---- ferry: a model of pre-copy ----------------------------------------------------------------
 */

/* A guest and a path. Pages of the working set are dirtied evenly. */
struct world {
    int64_t memory_mib, working_mib, dirty_mib_s, link_mib_s;
    int64_t calm_ms;               /* the guest stops dirtying then; 0 = never */
    int64_t dead_from, dead_until; /* no byte moves */
    bool away;                     /* the transport says so meanwhile */
    int64_t throttle_step;         /* of auto-converge, per two rounds */
    bool vfio;
};

struct end {
    enum strategy_action action; /* KEEP: switched over by itself */
    int64_t at_ms, downtime_ms;
    char why[256];
};

/* Runs until the switch-over, an abort, or a decision that ends pre-copy. Ten looks a second. */
static struct end simulate(const struct world *w, const struct wire_options *policy)
{
    struct strategy_memory memory = {0};
    double left = (double)w->memory_mib, dirtied = 0, sent = 0;
    int64_t iteration = 1, limit = 300, throttle = 0;
    double rate = 0, period = 0;

    for (int64_t now = 100; now < 4000000; now += 100) {
        bool dead = now >= w->dead_from && now < w->dead_until;
        double dirty = w->calm_ms && now >= w->calm_ms
                           ? 0
                           : (double)w->dirty_mib_s * (double)(100 - throttle) / 100;
        double step = dead ? 0 : (double)w->link_mib_s / 10;
        struct strategy_decision d;

        step = step < left ? step : left;
        left -= step;
        sent += step;
        period += 0.1;
        dirtied += dirty / 10;
        dirtied = dirtied < (double)w->working_mib ? dirtied : (double)w->working_mib;
        if (left <= 0.001) { /* QEMU looks what was dirtied: the next round, or the end */
            if (dirtied <= (double)w->link_mib_s * (double)limit / 1000) {
                return (struct end){
                    .at_ms = now, .downtime_ms = (int64_t)(dirtied * 1000 / (double)w->link_mib_s)};
            }
            rate = dirtied / period;
            period = 0;
            left = dirtied;
            dirtied = 0;
            iteration++;
            if (w->throttle_step && iteration > 3 && iteration % 2 == 0 && throttle < 99) {
                throttle = throttle + w->throttle_step > 99 ? 99 : throttle + w->throttle_step;
            }
        }
        strategy_decide(
            &(struct strategy_input){.policy = policy,
                                     .mode = MODE_PRE_COPY,
                                     .data_bytes = w->memory_mib * MIB,
                                     .elapsed_ms = now,
                                     .vfio = w->vfio,
                                     .path_away = dead && w->away,
                                     .sample = {.present = true,
                                                .active = true,
                                                .iteration = iteration,
                                                .remaining_bytes = (int64_t)(left * (double)MIB),
                                                .processed_bytes = (int64_t)(sent * (double)MIB),
                                                .bytes_per_s = dead ? 0 : w->link_mib_s * MIB,
                                                .dirty_bytes_per_s = (int64_t)(rate * (double)MIB),
                                                .throttle_percent = throttle}},
            &memory, &d);
        if (d.action == STRATEGY_SET_DOWNTIME) {
            limit = d.downtime_ms;
        } else if (d.action != KEEP) {
            struct end e = {.action = d.action, .at_ms = now};

            snprintf(e.why, sizeof(e.why), "%s", d.why);
            return e;
        }
    }
    return (struct end){.action = STRATEGY_ACTION_COUNT, .at_ms = 4000000};
}

static struct wire_options ferry_policy(bool post_copy, bool disruption, bool converge)
{
    struct wire_options p;

    wire_options_init(&p);
    p.allow_post_copy = post_copy;
    p.allow_workload_disruption = disruption;
    p.allow_auto_converge = converge;
    return p;
}

static void ferry_runs(void **state)
{
    static const struct {
        const char *name;
        struct world world;
        bool post_copy, disruption, converge;
        enum strategy_action action;
        int64_t earliest_ms, latest_ms; /* of the end */
        int64_t downtime_max_ms;
    } cases[] = {
        {"idle", {1024, 16, 1, 100}, false, false, false, KEEP, 10000, 12000, 300},
        {"steady, shrinks by itself",
         {1024, 512, 30, 100},
         false,
         false,
         false,
         KEEP,
         10000,
         20000,
         300},
        {"needs somewhat more downtime than 300 ms: gets it, not more",
         {1024, 60, 500, 100},
         false,
         false,
         false,
         KEEP,
         11000,
         14000,
         700},
        {"just above the maximum: 900 ms",
         {1024, 88, 500, 100},
         false,
         false,
         false,
         NOT_CONVERGING,
         37000,
         40000,
         0},
        {"243 dirties faster than the link: post-copy as soon as it is clear",
         {1024, 512, 500, 100},
         true,
         true,
         false,
         STRATEGY_POST_COPY,
         15000,
         22000,
         0},
        {"244 the same, only a pause is allowed",
         {1024, 512, 500, 100},
         false,
         true,
         false,
         STRATEGY_FORCE,
         15000,
         22000,
         0},
        {"248 the same with VFIO: never post-copy",
         {1024, 512, 500, 100, .vfio = true},
         true,
         true,
         false,
         STRATEGY_FORCE,
         15000,
         22000,
         0},
        {"306 post-copy is allowed, disruption is not",
         {1024, 512, 500, 100},
         true,
         false,
         false,
         NOT_CONVERGING,
         37000,
         40000,
         0},
        {"247 the same, nothing is allowed: aborted at a quarter of the time",
         {1024, 512, 500, 100},
         false,
         false,
         false,
         NOT_CONVERGING,
         37000,
         40000,
         0},
        {"306 shrinks, but far too slowly",
         {1024, 900, 95, 100},
         false,
         false,
         false,
         NOT_CONVERGING,
         37000,
         100000,
         0},
        {"auto-converge gets there in time",
         {1024, 300, 150, 100, .throttle_step = 10},
         true,
         true,
         true,
         KEEP,
         12000,
         120000,
         900},
        {"auto-converge cannot get there in time",
         {1024, 1000, 5000, 15, .throttle_step = 10},
         true,
         true,
         true,
         STRATEGY_POST_COPY,
         100000,
         151000,
         0},
        {"302 no byte moves from 5 s on: stuck",
         {1024, 16, 1, 100, .dead_from = 5000, .dead_until = 9000000},
         true,
         true,
         false,
         STUCK,
         150000,
         155300,
         0},
        {"an outage that the transport bridges is neither stuck nor late",
         {1024, 16, 1, 100, .dead_from = 5000, .dead_until = 400000, .away = true},
         false,
         false,
         false,
         KEEP,
         400000,
         410000,
         300},
        {"an outage of 90 s that nobody announced is survived too",
         {1024, 16, 1, 100, .dead_from = 5000, .dead_until = 95000},
         false,
         false,
         false,
         KEEP,
         95000,
         105000,
         300},
        {"a guest that calms down is not given up early",
         {1024, 512, 500, 100, .calm_ms = 30000},
         false,
         false,
         false,
         KEEP,
         30000,
         37000,
         300},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_options p =
            ferry_policy(cases[i].post_copy, cases[i].disruption, cases[i].converge);
        struct end e = simulate(&cases[i].world, &p);

        if (e.action != cases[i].action || e.at_ms < cases[i].earliest_ms ||
            e.at_ms > cases[i].latest_ms || e.downtime_ms > cases[i].downtime_max_ms) {
            fail_msg("%s: %s at %" PRId64 " ms, downtime %" PRId64 " ms (%s)", cases[i].name,
                     e.action < STRATEGY_ACTION_COUNT ? strategy_action_name(e.action) : "never",
                     e.at_ms, e.downtime_ms, e.why);
        }
    }
}

/* For every guest that cannot converge, ferry acts in at most half of the time of kubevirt. */
static void ferry_is_not_slower(void **state)
{
    (void)state;
    for (int64_t link = 20; link <= 1000; link *= 2) {
        for (int64_t working = 64; working <= 4096; working *= 2) {
            for (int64_t dirty = 5; dirty <= 5000; dirty *= 3) {
                struct world w = {4096, working, dirty, link};
                struct wire_options f = ferry_policy(true, true, false), k = f;

                k.strategy = WIRE_STRATEGY_KUBEVIRT;
                struct end mine = simulate(&w, &f), theirs = simulate(&w, &k);
                bool theirs_timed_out = theirs.action == STRATEGY_POST_COPY;
                if (mine.action == STUCK || mine.action == NOT_CONVERGING ||
                    (theirs_timed_out && mine.action == STRATEGY_POST_COPY &&
                     mine.at_ms > theirs.at_ms / 2 && link >= 40) ||
                    (!theirs_timed_out && mine.at_ms > theirs.at_ms + 100)) {
                    fail_msg("link %" PRId64 " working set %" PRId64 " dirty %" PRId64
                             ": ferry %s at %" PRId64 " ms, kubevirt %s at %" PRId64 " ms",
                             link, working, dirty, strategy_action_name(mine.action), mine.at_ms,
                             strategy_action_name(theirs.action), theirs.at_ms);
                }
            }
        }
    }
}

static void ferry_steps(void **state)
{
    static const struct strategy_case cases[] = {
        {"213 maxDowntimeMs below QEMU's default is set at once",
         {.max_downtime_ms = 100, .completion_timeout_per_gib_s = 150},
         false,
         {{400, .blind = true},
          {800, 100, 1, 10, STRATEGY_SET_DOWNTIME, 100},
          {1200, 100, 1, 10, STRATEGY_SET_DOWNTIME, 100, .failed = true},
          {1600, 100, 1, 10, KEEP}}},
        {"304 statistics that always fail",
         {.progress_timeout_s = 50, .max_downtime_ms = 900},
         false,
         {{1000, .blind = true}, {51000, .blind = true}, {51001, .action = STUCK, .blind = true}}},
        {"271 post-copy: nothing, ever",
         {.progress_timeout_s = 50, .max_downtime_ms = 900, .completion_timeout_per_gib_s = 1},
         false,
         {{1000, 100, 2, 1, KEEP, .mode = MODE_POST_COPY},
          {900000, 100, 2, 1, KEEP, .mode = MODE_POST_COPY}}},
        {"an abort on its way: nothing",
         {.max_downtime_ms = 900,
          .completion_timeout_per_gib_s = 1,
          .allow_post_copy = true,
          .allow_workload_disruption = true},
         false,
         {{900000, 100, 2, 1, KEEP, .aborting = true}}},
        {"310 paused, and not in doubled time either",
         {.max_downtime_ms = 900,
          .completion_timeout_per_gib_s = 150,
          .allow_workload_disruption = true},
         false,
         {{150000, 100, 2, 1, KEEP},
          {150001, 100, 2, 1, STRATEGY_FORCE, 2000000},
          {150401, 100, 2, 1, STRATEGY_FORCE, 2000000, .failed = true},
          {300000, 90, 2, 1, KEEP, .mode = MODE_PAUSED},
          {300001, 90, 2, 1, NOT_CONVERGING, .mode = MODE_PAUSED}}},
        {"limits of 0 are none",
         {.max_downtime_ms = 900},
         false,
         {{1000, 100, 1, 1, KEEP}, {INT64_C(1) << 40, 100, 1, 1, KEEP}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_case(&cases[i]);
    }
}

/* ---- recorded moves ----------------------------------------------------------------------------
 */

static int64_t record_ms(yyjson_val *line)
{
    int64_t ms = 0;

    assert_int_equal(api_time_parse(yyjson_get_str(yyjson_obj_get(line, "time")), &ms, NULL), 0);
    return ms;
}

static int64_t number(yyjson_val *line, const char *name)
{
    return yyjson_get_sint(yyjson_obj_get(line, name));
}

static struct launcher_sample recorded_sample(yyjson_val *line)
{
    return (struct launcher_sample){.present = true,
                                    .active = true,
                                    .total_bytes = number(line, "totalBytes"),
                                    .processed_bytes = number(line, "processedBytes"),
                                    .remaining_bytes = number(line, "remainingBytes"),
                                    .bytes_per_s = number(line, "bytesPerS"),
                                    .dirty_bytes_per_s = number(line, "dirtyBytesPerS"),
                                    .iteration = number(line, "iteration"),
                                    .throttle_percent = number(line, "throttlePercent")};
}

struct replay {
    struct wire_options policy;
    struct strategy_memory memory;
    struct strategy_input in;
    int64_t start_ms;
    char decided[200], recorded[200];
};

static void replay_line(struct replay *r, yyjson_val *line)
{
    const char *type = yyjson_get_str(yyjson_obj_get(line, "type"));
    struct strategy_decision d;

    if (strcmp(type, "start") == 0) {
        assert_int_equal(wire_options_read(yyjson_obj_get(line, "options"), &r->policy, NULL), 0);
        r->in = (struct strategy_input){
            .policy = &r->policy, .mode = MODE_PRE_COPY, .data_bytes = number(line, "guestBytes")};
        r->start_ms = record_ms(line);
    } else if (strcmp(type, "decision") == 0) {
        strcat(strcat(r->recorded, yyjson_get_str(yyjson_obj_get(line, "action"))), " ");
    } else if (strcmp(type, "sample") == 0) {
        r->in.elapsed_ms = record_ms(line) - r->start_ms;
        r->in.sample = recorded_sample(line);
        strategy_decide(&r->in, &r->memory, &d);
        if (d.action != KEEP) {
            strcat(strcat(r->decided, strategy_action_name(d.action)), " ");
        }
        r->in.aborting = r->in.aborting || d.action == STUCK || d.action == NOT_CONVERGING;
        r->in.mode = d.action == STRATEGY_POST_COPY ? MODE_POST_COPY
                     : d.action == STRATEGY_FORCE   ? MODE_PAUSED
                                                    : r->in.mode;
    }
}

/* What was decided in moves of real guests is decided again from their records. */
static void recorded_moves(void **state)
{
    static const char *const names[] = {"post-copy", "force", "abort-not-converging",
                                        "set-downtime"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        ferry_cleanup_free char *path =
            ferry_asprintf("%s/strategy/%s.jsonl", GOLDEN_DIR, names[i]);
        ferry_cleanup_buf struct ferry_buf text = {0};
        struct replay r = {0};

        assert_int_equal(ferry_read_file(path, 1 << 20, &text, NULL), 0);
        for (char *p = text.data; p < text.data + text.len;) {
            char *end = memchr(p, '\n', (size_t)(text.data + text.len - p));
            yyjson_doc *doc = yyjson_read(p, (size_t)(end - p), 0);

            replay_line(&r, yyjson_doc_get_root(doc));
            yyjson_doc_free(doc);
            p = end + 1;
        }
        if (strcmp(r.decided, r.recorded) != 0) {
            fail_msg("%s: decided %s, recorded %s", names[i], r.decided, r.recorded);
        }
    }
}

static void dirtying(void **state)
{
    static const struct {
        const char *name;
        int64_t one_mib, two_mib, most_mib; /* sampled in one second, in two; memory in use */
        int64_t rate_least, rate_most, set_least, set_most;
    } cases[] = {
        {"idle", 0, 0, 100, 0, 0, 100, 100},
        {"steady: the second second adds as much", 10, 20, 100, 10, 10, 100, 100},
        {"noise of sampling", 10, 21, 100, 10, 10, 100, 100},
        {"a small set, again and again", 16, 16, 100, 16, 100, 16, 17},
        {"less in two seconds than in one is noise, too", 16, 15, 100, 16, 100, 16, 17},
        {"at random over 64 MiB", 40, 55, 100, 50, 70, 60, 68},
        {"never more than is in use", 80, 120, 100, 60, 100, 100, 100},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct plan_dirtying d = plan_dirtying_of(cases[i].one_mib * MIB, cases[i].two_mib * MIB,
                                                  cases[i].most_mib * MIB);

        if (d.bytes_per_s < cases[i].rate_least * MIB || d.bytes_per_s > cases[i].rate_most * MIB ||
            d.set_bytes < cases[i].set_least * MIB || d.set_bytes > cases[i].set_most * MIB) {
            fail_msg("%s: %lld bytes/s over %lld bytes", cases[i].name, (long long)d.bytes_per_s,
                     (long long)d.set_bytes);
        }
    }
}

static void memory_in_use(void **state)
{
    static const char text[] = "55d0c0000000-55d0c0100000 r-xp 00000000 08:01 12 /usr/bin/qemu\n"
                               "Size:               1024 kB\nRss:                 700 kB\n"
                               "7f0000000000-7f0010000000 rw-p 00000000 00:00 0\n"
                               "Size:             262144 kB\nRss:              5000 kB\n"
                               "7f1000000000-7f1008000000 rw-p 00000000 00:00 0 \n"
                               "Size:             131072 kB\nKernelPageSize:        4 kB\n"
                               "Rss:               66560 kB\nPss: 66560 kB\n";

    (void)state;
    assert_int_equal(smaps_guest_resident(text, 128 * MIB), 66560 * 1024);
    assert_int_equal(smaps_guest_resident(text, 200 * MIB), 5000 * 1024);
    assert_int_equal(smaps_guest_resident(text, 512 * MIB), -1);
    assert_int_equal(smaps_guest_resident("", MIB), -1);
    assert_int_equal(smaps_guest_resident("Rss: 5 kB\n\n-\n", 0), -1);
}

static void plans(void **state)
{
    static const struct {
        const char *name;
        int64_t data_mib, dirty_mib_s, path_mib_s;
        bool post_copy;
        enum plan_end expected, high;
        int64_t total_least_ms, total_most_ms; /* of the expected case */
    } cases[] = {
        {"idle", 1024, 0, 100, false, PLAN_SWITCHES_OVER, PLAN_SWITCHES_OVER, 10700, 11000},
        {"steady", 1024, 20, 100, false, PLAN_SWITCHES_OVER, PLAN_SWITCHES_OVER, 12500, 14500},
        {"heavy", 1024, 60, 100, true, PLAN_SWITCHES_OVER, PLAN_POST_COPY, 20000, 30000},
        {"too heavy", 1024, 500, 100, true, PLAN_POST_COPY, PLAN_POST_COPY, 30000, 60000},
        {"too heavy, nothing is allowed", 1024, 500, 100, false, PLAN_ABORT, PLAN_ABORT, 37000,
         90000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct plan_input in = {
            .policy = ferry_policy(cases[i].post_copy, cases[i].post_copy, false),
            .guest_bytes = cases[i].data_mib * MIB,
            .memory_bytes = cases[i].data_mib * MIB,
            .dirtying = {cases[i].dirty_mib_s * MIB, cases[i].data_mib * MIB},
            .path_bytes_per_s = cases[i].path_mib_s * MIB,
        };
        struct plan p;

        in.policy.path_bytes_per_s = in.path_bytes_per_s; /* as handlers give it */
        plan_make(&in, &p);
        if (p.expected.end != cases[i].expected || p.high.end != cases[i].high ||
            p.expected.total_ms < cases[i].total_least_ms ||
            p.expected.total_ms > cases[i].total_most_ms || p.low.total_ms > p.expected.total_ms) {
            char *text = plan_json(&in, &p);

            fail_msg("%s: %s", cases[i].name, text);
        }
    }
}

/* ---- limits of what a guest writes, where KVM has a dirty ring ---------------------------------
 */

#define LIMIT STRATEGY_LIMIT_WRITES
#define CONVERGE                                                                                   \
    .completion_timeout_per_gib_s = 600, .max_downtime_ms = 300, .allow_auto_converge = true

static void limited_writes(void **state)
{
    static const struct strategy_case cases[] = {
        {"rounds that do not shrink are answered by half of the path, then by half again",
         {CONVERGE},
         false,
         {{1000, 800, 1, 100, KEEP},
          {10000, 400, 2, 100, KEEP},
          {14000, 400, 3, 100, LIMIT, .limit_mib = 25},
          {14400, 300, 3, 100, KEEP},
          {18000, 390, 4, 100, LIMIT, .limit_mib = 12},
          {22000, 100, 5, 100, KEEP}},
         .limited_vcpus = 2},
        {"it goes before post-copy",
         {CONVERGE, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {{1000, 800, 1, 100, KEEP},
          {10000, 400, 2, 100, KEEP},
          {14000, 400, 3, 100, LIMIT, .limit_mib = 50},
          {18000, 400, 4, 100, LIMIT, .limit_mib = 25}},
         .limited_vcpus = 1},
        {"not below the least: then the others judge",
         {CONVERGE, .allow_post_copy = true, .allow_workload_disruption = true},
         false,
         {{1000, 800, 1, 4, KEEP},
          {10000, 400, 2, 4, KEEP},
          {14000, 400, 3, 4, LIMIT, .limit_mib = 2},
          {18000, 400, 4, 4, LIMIT, .limit_mib = 1},
          {22000, 400, 5, 4, KEEP},
          {26000, 400, 6, 4, STRATEGY_POST_COPY}},
         .limited_vcpus = 1},
        {"one that QEMU refuses is not asked for again",
         {CONVERGE},
         false,
         {{1000, 800, 1, 100, KEEP},
          {10000, 400, 2, 100, KEEP},
          {14000, 400, 3, 100, LIMIT, .limit_mib = 50},
          {14400, 400, 3, 100, KEEP, .failed = true},
          {18000, 400, 4, 100, KEEP}},
         .limited_vcpus = 1},
        {"rounds that shrink well need none",
         {CONVERGE},
         false,
         {{1000, 800, 1, 100, KEEP},
          {10000, 400, 2, 100, KEEP},
          {14000, 200, 3, 100, KEEP},
          {16000, 100, 4, 100, KEEP}},
         .limited_vcpus = 1},
        {"none where nobody allows to slow the guest down",
         {.completion_timeout_per_gib_s = 600, .max_downtime_ms = 300},
         false,
         {{1000, 800, 1, 100, KEEP}, {10000, 400, 2, 100, KEEP}, {14000, 400, 3, 100, KEEP}},
         .limited_vcpus = 1},
        {"emulated: auto-converge is at work",
         {CONVERGE},
         false,
         {{1000, 800, 1, 100, KEEP}, {10000, 400, 2, 100, KEEP}, {14000, 400, 3, 100, KEEP}}},
        {"KubeVirt's strategy does not know it",
         {CONVERGE, .strategy = WIRE_STRATEGY_KUBEVIRT, .progress_timeout_s = 150},
         false,
         {{1000, 800, 1, 100, KEEP}, {10000, 400, 2, 100, KEEP}, {14000, 400, 3, 100, KEEP}},
         .limited_vcpus = 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run_case(&cases[i]);
    }
}

static void who_can_be_limited(void **state)
{
#define DOMAIN(type, features)                                                                     \
    "<domain type='" type "'><vcpu placement='static'>3</vcpu><features><acpi/>" features          \
    "</features></domain>"
    (void)state;
    assert_int_equal(
        dirty_limit_vcpus_of(DOMAIN("kvm", "<kvm><dirty-ring state='on' size='4096'/></kvm>")), 3);
    assert_int_equal(dirty_limit_vcpus_of(DOMAIN("kvm", "")), 0); /* of an older launcher */
    assert_int_equal(dirty_limit_vcpus_of(DOMAIN("kvm", "<kvm><dirty-ring state='off'/></kvm>")),
                     0);
    assert_int_equal(
        dirty_limit_vcpus_of(DOMAIN("qemu", "<kvm><dirty-ring state='on' size='4096'/></kvm>")), 0);
    assert_int_equal(dirty_limit_vcpus_of("<domain"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limited_writes),
        cmocka_unit_test(who_can_be_limited),
        cmocka_unit_test(kubevirt_legacy),
        cmocka_unit_test(kubevirt_stall),
        cmocka_unit_test(kubevirt_bandwidth),
        cmocka_unit_test(ferry_steps),
        cmocka_unit_test(ferry_runs),
        cmocka_unit_test(ferry_is_not_slower),
        cmocka_unit_test(dirtying),
        cmocka_unit_test(memory_in_use),
        cmocka_unit_test(plans),
        cmocka_unit_test(recorded_moves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
