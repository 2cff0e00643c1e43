/* Theory of operation. Pre-copy goes in rounds: what was dirtied while a round was sent is the work
 * of the next. So all that matters happens at the begin of a round: R bytes remain, and the path
 * carries B bytes per second. QEMU switches over when R/B fits into the allowed downtime.
 *
 *  - R/B fits into what QEMU was told: it will finish by itself.
 *  - It fits into the policy's maximum, and the rounds no longer shrink much: allow as much as is
 *    needed, not more.
 *  - Else the ratio q of one round's R to the one before tells how many rounds, and how much time,
 *    are left until it fits; auto-converge lowers the dirty rate meanwhile. When that time is more
 *    than the policy grants, the round counts as a verdict "cannot converge". Two in a row (or one
 *    that the dirty rate itself confirms) are enough for post-copy or a pause; an abort, which
 *    wastes all that was sent, needs four and a quarter of the granted time, in case the guest
 *    calms down.
 *
 * "Stuck" is something else: no byte moves. While the transport bridges an outage all clocks here
 * stand still. */
#include <math.h>

#include "launcher/strategy/strategy_priv.h"

#define GIB (INT64_C(1) << 30)

enum {
    WINDOW_MS = 1000,     /* bandwidth is measured over at least this */
    FLOWS_MS = 10000,     /* without a byte for this long nothing is known about convergence */
    ROUND_LEAST_MS = 200, /* shorter rounds say nothing about rates */
    CLEAR_VERDICTS = 2,   /* for post-copy and pause */
    ABORT_VERDICTS = 4,   /* for an abort */
    THROTTLE_STEP = 10,   /* percent; QEMU raises by this every other round */
    THROTTLE_MAX = 99,
};
#define SHRINKS_WELL 0.7 /* such rounds get there by themselves */
#define SHRINKS 0.95     /* others do not shrink at all */
#define HEADROOM 1.15    /* of a downtime over the estimate: rates are noisy */

static int64_t mib(int64_t bytes)
{
    return bytes >> 20;
}

int64_t strategy_allowed_ms(const struct strategy_input *in)
{
    int64_t gib = (in->data_bytes + GIB - 1) / GIB;

    return in->policy->completion_timeout_per_gib_s * (gib > 0 ? gib : 1) * 1000;
}

/* ---- measuring ---------------------------------------------------------------------------------
 */

static void advance_clock(const struct strategy_input *in, struct strategy_memory *memory)
{
    struct strategy_ferry *f = &memory->ferry;

    if (!memory->started) {
        *f = (struct strategy_ferry){.seen_ms = in->elapsed_ms,
                                     .now_ms = in->elapsed_ms,
                                     .moved_ms = in->elapsed_ms,
                                     .downtime_ms = STRATEGY_DOWNTIME_DEFAULT_MS};
    }
    if (in->path_away && in->elapsed_ms > f->seen_ms) {
        f->away_ms += in->elapsed_ms - f->seen_ms;
    }
    f->seen_ms = in->elapsed_ms;
    f->now_ms = in->elapsed_ms - f->away_ms;
}

static int64_t smooth(int64_t old, int64_t fresh)
{
    return old ? (old + fresh) / 2 : fresh;
}

static void measure_bandwidth(struct strategy_ferry *f, const struct launcher_sample *s)
{
    if (s->processed_bytes > f->moved) {
        f->moved = s->processed_bytes;
        f->moved_ms = f->now_ms;
    }
    if (!f->window_ms || s->processed_bytes < f->window_processed) {
        f->window_ms = f->now_ms;
        f->window_processed = s->processed_bytes;
    }
    int64_t ms = f->now_ms - f->window_ms;
    if (ms >= WINDOW_MS) {
        f->bandwidth = smooth(f->bandwidth, (s->processed_bytes - f->window_processed) * 1000 / ms);
        f->window_ms = f->now_ms;
        f->window_processed = s->processed_bytes;
    }
}

/* On the wire; from QEMU's own figure until there is a measured one. */
static int64_t wire_rate(const struct strategy_ferry *f, const struct launcher_sample *s)
{
    return f->bandwidth ? f->bandwidth : s->bytes_per_s;
}

/* How fast pages are dealt with: zero and compressed ones cost less than they count. */
static int64_t page_rate(const struct strategy_ferry *f, const struct launcher_sample *s)
{
    int64_t wire = wire_rate(f, s);

    return f->drain > wire ? f->drain : wire;
}

static void measure_drain(struct strategy_ferry *f, const struct launcher_sample *s)
{
    int64_t ms = f->now_ms - f->round_ms;

    if (f->iteration >= 2 && s->iteration == f->iteration && ms >= WINDOW_MS &&
        f->round_remaining > s->remaining_bytes) {
        f->drain = (f->round_remaining - s->remaining_bytes) * 1000 / ms;
    }
}

/* ---- judging -----------------------------------------------------------------------------------
 */

static int64_t ms_for(int64_t bytes, int64_t rate)
{
    return rate > 0 ? (int64_t)((double)bytes * 1000 / (double)rate) : INT64_MAX / 2;
}

/* Time until rounds that shrink by `q` from `bytes` fit into `fits`; very long when never. */
static int64_t ms_until(int64_t bytes, int64_t fits, double q, int64_t rate)
{
    if (fits <= 0 || rate <= 0 || q >= SHRINKS) {
        return INT64_MAX / 2;
    }
    double rounds = ceil(log((double)fits / (double)bytes) / log(q));
    double work = (double)bytes * (1 - pow(q, rounds)) / (1 - q);

    return (int64_t)(work * 1000 / (double)rate);
}

/* The same with auto-converge: its throttle rises a step every other round until it suffices. */
static int64_t ms_until_throttled(const struct launcher_sample *s, int64_t bytes, int64_t fits,
                                  int64_t rate)
{
    if (s->dirty_bytes_per_s <= 0 || rate <= 0 || fits <= 0) {
        return INT64_MAX / 2;
    }
    /* a guest that runs half of the time dirties half as much; a third of the rate converges fast
     */
    double runs = (double)(100 - s->throttle_percent) / 100;
    double needed = 1 - runs * (double)rate / 3 / (double)s->dirty_bytes_per_s;
    double rise = needed * 100 - (double)s->throttle_percent;
    if (needed * 100 > THROTTLE_MAX) {
        return INT64_MAX / 2;
    }
    double rounds = rise > 0 ? 2 * ceil(rise / THROTTLE_STEP) : 0;
    return (int64_t)(rounds * (double)ms_for(bytes, rate)) + ms_until(bytes, fits, 1.0 / 3, rate);
}

static bool in_time(const struct strategy_input *in, const struct strategy_ferry *f, int64_t ms)
{
    int64_t allowed = strategy_allowed_ms(in);

    return ms < INT64_MAX / 2 && (allowed == 0 || f->now_ms + ms <= allowed);
}

/* A new round began with `s->remaining_bytes`: can the move converge? Counts verdicts; returns the
 * downtime that would let it finish now, 0 when none is to be set. */
static int64_t judge_round(const struct strategy_input *in, struct strategy_ferry *f, double q)
{
    const struct launcher_sample *s = &in->sample;
    int64_t wire = wire_rate(f, s), rate = page_rate(f, s);
    int64_t need_ms = ms_for(s->remaining_bytes, wire);
    int64_t fits = (int64_t)((double)wire * (double)in->policy->max_downtime_ms / 1000 / HEADROOM);

    if (wire <= 0) {
        return 0;
    }
    if (s->remaining_bytes <= fits) {
        f->hopeless = 0;
        int64_t wanted = (int64_t)((double)need_ms * HEADROOM) + 1;

        if (wanted <= f->downtime_ms || q < SHRINKS_WELL) {
            return 0;
        }
        return wanted < in->policy->max_downtime_ms ? wanted : in->policy->max_downtime_ms;
    }
    int64_t ms = ms_until(s->remaining_bytes, fits, q, rate);
    if (!in_time(in, f, ms) && in->policy->allow_auto_converge && !in->limited_vcpus &&
        s->throttle_percent < THROTTLE_MAX) {
        ms = ms_until_throttled(s, s->remaining_bytes, fits, rate);
    }
    if (in_time(in, f, ms)) {
        f->hopeless = 0;
    } else {
        bool confirmed = q >= SHRINKS && s->dirty_bytes_per_s >= rate - rate / 10;

        f->hopeless += confirmed ? CLEAR_VERDICTS : 1;
    }
    return 0;
}

/* Takes notice of a new round; the downtime to set, or 0. */
static int64_t look_at_round(const struct strategy_input *in, struct strategy_ferry *f)
{
    const struct launcher_sample *s = &in->sample;
    int64_t downtime = 0;

    if (s->iteration <= f->iteration) {
        return 0;
    }
    /* The first round sends everything: nothing can be said before the third begins. */
    if (f->iteration >= 2 && f->round_remaining > 0 && f->now_ms - f->round_ms >= ROUND_LEAST_MS) {
        downtime = judge_round(in, f, (double)s->remaining_bytes / (double)f->round_remaining);
    }
    f->iteration = s->iteration;
    f->round_ms = f->now_ms;
    f->round_remaining = s->remaining_bytes;
    f->rounds_since_low++;
    if (s->iteration >= 2 && (!f->low || s->remaining_bytes < f->low - f->low / 100)) {
        f->low = s->remaining_bytes;
        f->low_ms = f->now_ms;
        f->rounds_since_low = 0;
    }
    return downtime;
}

/* ---- acting ------------------------------------------------------------------------------------
 */

/* It cannot converge, or not in time: `how` says why. `final`: there is no time left. */
static void give_up_precopy(const struct strategy_input *in, const struct strategy_ferry *f,
                            const char *how, bool final, struct strategy_decision *ret)
{
    const struct wire_options *p = in->policy;
    const struct launcher_sample *s = &in->sample;
    int64_t rate = page_rate(f, s), allowed = strategy_allowed_ms(in);
    long long figures[] = {mib(s->remaining_bytes), mib(rate), mib(s->dirty_bytes_per_s)};

    if (f->now_ms - f->moved_ms > FLOWS_MS) { /* a dead path would take the guest with it */
        if (final) {
            strategy_act(ret, STRATEGY_ABORT_STUCK,
                         "Live migration is stuck: %s, and no byte was sent for %lld s, %lld MiB "
                         "remain",
                         how, (long long)((f->now_ms - f->moved_ms) / 1000), figures[0]);
        }
    } else if (p->allow_post_copy && p->allow_workload_disruption && !in->vfio &&
               s->iteration >= 1 && in->mode != MODE_PAUSED) {
        strategy_act(ret, STRATEGY_POST_COPY,
                     "%s: %lld MiB remain, %lld MiB/s sent, %lld MiB/s dirtied; the rest follows "
                     "after the guest",
                     how, figures[0], figures[1], figures[2]);
    } else if (p->allow_workload_disruption && in->mode != MODE_PAUSED) {
        strategy_act(ret, STRATEGY_FORCE,
                     "%s: %lld MiB remain, %lld MiB/s sent, %lld MiB/s dirtied; the guest is "
                     "paused for about %lld s",
                     how, figures[0], figures[1], figures[2],
                     (long long)(ms_for(s->remaining_bytes, rate) / 1000));
        ret->downtime_ms = STRATEGY_DOWNTIME_UNLIMITED_MS;
    } else if (final || (f->hopeless >= ABORT_VERDICTS && allowed && f->now_ms >= allowed / 4)) {
        strategy_act(ret, STRATEGY_ABORT_NOT_CONVERGING,
                     "Live migration does not converge: %s; %lld MiB remain after %lld s, %lld "
                     "MiB/s sent, %lld MiB/s dirtied",
                     how, figures[0], (long long)(f->now_ms / 1000), figures[1], figures[2]);
    }
}

static bool stuck(const struct strategy_input *in, const struct strategy_ferry *f,
                  struct strategy_decision *ret)
{
    int64_t limit = in->policy->progress_timeout_s, idle = f->now_ms - f->moved_ms;

    if (!limit || idle <= limit * 1000 || in->path_away) {
        return false;
    }
    strategy_act(ret, STRATEGY_ABORT_STUCK,
                 "Live migration is stuck: no byte was sent for %lld s (limit %lld s), %lld MiB "
                 "remain",
                 (long long)(idle / 1000), (long long)limit,
                 (long long)mib(in->sample.remaining_bytes));
    return true;
}

/* Limits that need no model. */
static void check_clocks(const struct strategy_input *in, struct strategy_ferry *f,
                         struct strategy_decision *ret)
{
    int64_t allowed = strategy_allowed_ms(in), window = in->policy->progress_timeout_s * 1000;

    if (stuck(in, f, ret)) {
        return;
    }
    if (in->mode == MODE_PAUSED) { /* as long again: what is left must only be sent */
        if (allowed && f->now_ms > 2 * allowed) {
            give_up_precopy(in, f, "paused, and still not completed", true, ret);
        }
        return;
    }
    if (allowed && f->now_ms > allowed) {
        give_up_precopy(in, f, "the granted time is over", true, ret);
    } else if (window && f->rounds_since_low >= 2 && f->now_ms - f->low_ms > window) {
        give_up_precopy(in, f, "no round began with less for too long", true, ret);
    } else if (f->hopeless >= CLEAR_VERDICTS) {
        give_up_precopy(in, f, "rounds do not shrink enough", false, ret);
    }
}

static void set_downtime(struct strategy_ferry *f, int64_t ms, const struct launcher_sample *s,
                         struct strategy_decision *ret)
{
    strategy_act(ret, STRATEGY_SET_DOWNTIME,
                 "a downtime of %lld ms lets it finish: %lld MiB remain, %lld MiB/s sent, %lld "
                 "MiB/s dirtied",
                 (long long)ms, (long long)mib(s->remaining_bytes), (long long)mib(wire_rate(f, s)),
                 (long long)mib(s->dirty_bytes_per_s));
    ret->downtime_ms = ms;
    f->downtime_before = f->downtime_ms;
    f->downtime_ms = ms;
}

void strategy_ferry_decide(const struct strategy_input *in, struct strategy_memory *memory,
                           struct strategy_decision *ret)
{
    struct strategy_ferry *f = &memory->ferry;
    const struct launcher_sample *s = &in->sample;
    int64_t downtime = 0;

    advance_clock(in, memory);
    if (in->last_failed && memory->last == STRATEGY_SET_DOWNTIME) {
        f->downtime_ms = f->downtime_before;
        f->downtime_set = false;
    }
    if (s->present) {
        measure_bandwidth(f, s);
        measure_drain(f, s);
        downtime = look_at_round(in, f);
    }
    if (in->mode == MODE_POST_COPY || in->aborting) {
        return;
    }
    if (s->active && !f->downtime_set && in->policy->max_downtime_ms < f->downtime_ms) {
        f->downtime_set = true;
        downtime = in->policy->max_downtime_ms;
    }
    if (in->mode == MODE_PRE_COPY && downtime) {
        set_downtime(f, downtime, s, ret);
    } else {
        check_clocks(in, f, ret);
    }
}
