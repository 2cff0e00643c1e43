/* KubeVirt's monitor (v1.6 and later), in its two forms: the legacy one, which acts when the
 * granted time is over, and stall detection, which acts when rounds no longer get smaller. Sizes
 * are decimal and rounded up, "progress" compares with the sample before: this is how KubeVirt
 * counts, and the point here is to do the same. One thing is not copied: nothing is started while
 * an abort is on its way. */
#include <stddef.h>
#include <string.h>

#include "launcher/strategy/strategy_priv.h"

#define GIGA INT64_C(1000000000)

static int64_t mib(int64_t bytes)
{
    return bytes >> 20;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t granted_ms(const struct strategy_input *in)
{
    int64_t giga = (in->data_bytes + GIGA - 1) / GIGA;

    return in->policy->completion_timeout_per_gib_s * (giga > 0 ? giga : 1) * 1000;
}

static bool may_post_copy(const struct strategy_input *in)
{
    return in->policy->allow_post_copy && !in->vfio;
}

/* ---- without stall detection -------------------------------------------------------------------
 */

/* True when a downtime is to be set now. */
static bool tune_downtime(const struct strategy_input *in, struct strategy_kubevirt *k,
                          struct strategy_decision *ret)
{
    const struct wire_tuning *t = &in->policy->tuning;
    int64_t max = in->policy->max_downtime_ms, wanted;

    if (!t->on || !in->sample.active) {
        return false;
    }
    if (!k->downtime_set) {
        wanted = min64(t->initial_ms, max);
    } else {
        int64_t step = (max - t->initial_ms) / (t->steps > 0 ? t->steps : 1);

        if (!in->sample.present || in->sample.iteration < t->start_iteration ||
            in->elapsed_ms - k->tuned_ms < t->cooldown_s * 1000) {
            return false;
        }
        wanted = min64(k->downtime_ms + (step > 1 ? step : 1), max);
        if (wanted <= k->downtime_ms) {
            return false;
        }
    }
    k->downtime_before = k->downtime_set ? k->downtime_ms : 0;
    k->downtime_set = true;
    k->downtime_ms = wanted;
    k->tuned_ms = in->elapsed_ms;
    ret->downtime_ms = wanted;
    strategy_act(ret, STRATEGY_SET_DOWNTIME, "downtime tuning: %lld ms in round %lld",
                 (long long)wanted, (long long)in->sample.iteration);
    return true;
}

static void note_progress(const struct strategy_input *in, struct strategy_kubevirt *k)
{
    if (!in->sample.active || !in->sample.present) {
        return;
    }
    if (k->watermark == 0 || in->sample.remaining_bytes < k->watermark) {
        k->progress_ms = in->elapsed_ms;
    }
    k->watermark = in->sample.remaining_bytes;
}

static void disrupt(const struct strategy_input *in, int64_t granted, struct strategy_decision *ret)
{
    long long after = in->elapsed_ms / 1000, remain = mib(in->sample.remaining_bytes);

    if (may_post_copy(in)) {
        strategy_act(ret, STRATEGY_POST_COPY, "not completed after %lld s, %lld MiB remain", after,
                     remain);
    } else if (in->vfio) {
        ret->downtime_ms = min64(2 * granted, STRATEGY_DOWNTIME_UNLIMITED_MS);
        strategy_act(
            ret, STRATEGY_FORCE,
            "not completed after %lld s, %lld MiB remain; a device keeps it from post-copy", after,
            remain);
    } else {
        strategy_act(ret, STRATEGY_PAUSE, "not completed after %lld s, %lld MiB remain", after,
                     remain);
    }
}

static void decide_legacy(const struct strategy_input *in, struct strategy_kubevirt *k,
                          struct strategy_decision *ret)
{
    int64_t granted = granted_ms(in), progress = in->policy->progress_timeout_s * 1000;
    int64_t limit = in->mode == MODE_PAUSED ? 2 * granted : granted;

    note_progress(in, k);
    if (in->mode == MODE_POST_COPY || in->aborting || tune_downtime(in, k, ret)) {
        return;
    }
    if (granted && in->policy->allow_workload_disruption && in->elapsed_ms > limit &&
        in->mode != MODE_PAUSED) {
        disrupt(in, granted, ret);
    } else if (progress && in->elapsed_ms - k->progress_ms > progress) {
        strategy_act(ret, STRATEGY_ABORT_STUCK,
                     "Live migration is stuck and will be aborted after %lld s without progress, "
                     "%lld MiB remain",
                     (long long)(in->elapsed_ms - k->progress_ms) / 1000,
                     (long long)mib(in->sample.remaining_bytes));
    } else if (granted && in->elapsed_ms > limit) {
        strategy_act(ret, STRATEGY_ABORT_NOT_CONVERGING,
                     "Live migration is not completed after %lld s and will be aborted, %lld MiB "
                     "remain",
                     (long long)in->elapsed_ms / 1000, (long long)mib(in->sample.remaining_bytes));
    }
}

/* ---- stall detection: records ------------------------------------------------------------------
 */

static void drop_candidate(struct strategy_kubevirt *k)
{
    int64_t r = k->candidates[0].remaining;

    if (!k->min_outside || r < k->min_outside) {
        k->min_outside = r;
    }
    memmove(k->candidates, k->candidates + 1,
            sizeof(k->candidates[0]) * (size_t)(--k->n_candidates));
}

static void note_record(const struct strategy_input *in, struct strategy_kubevirt *k)
{
    int64_t window = in->policy->stall.progress_timeout_s * 1000;
    int64_t remaining = in->sample.remaining_bytes;

    while (k->n_candidates && (k->n_candidates == STRATEGY_CANDIDATES_MAX ||
                               in->elapsed_ms - k->candidates[0].elapsed_ms >= window)) {
        drop_candidate(k);
    }
    bool larger = k->min_outside && remaining > k->min_outside;
    bool not_smaller = k->n_candidates && remaining >= k->candidates[k->n_candidates - 1].remaining;
    if (!larger && !not_smaller) {
        k->candidates[k->n_candidates++] =
            (struct strategy_record){.remaining = remaining, .elapsed_ms = in->elapsed_ms};
    }
}

static void remember(struct strategy_kubevirt *k, int64_t remaining)
{
    int at = k->n_history;

    if (at == STRATEGY_CANDIDATES_MAX) {
        if (remaining >= k->history[at - 1]) {
            return;
        }
        at = --k->n_history;
    }
    while (at && k->history[at - 1] > remaining) { /* ascending */
        k->history[at] = k->history[at - 1];
        at--;
    }
    k->history[at] = remaining;
    k->n_history++;
}

static void relax(const struct strategy_input *in, struct strategy_kubevirt *k)
{
    if (in->elapsed_ms < k->relax_ms || !k->n_history) {
        return;
    }
    k->best = k->history[0];
    memmove(k->history, k->history + 1, sizeof(k->history[0]) * (size_t)(--k->n_history));
    k->patience_ms = (int64_t)((double)k->patience_ms * in->policy->stall.decay);
    k->relax_ms = in->elapsed_ms + k->patience_ms;
}

/* At the begin of a round: true when rounds have stopped getting smaller. */
static bool find_stall(const struct strategy_input *in, struct strategy_kubevirt *k)
{
    int64_t remaining = in->sample.remaining_bytes;
    double margin = (double)in->policy->stall.margin_percent / 100;

    if (k->bandwidth <= 0 || k->switching) {
        return false;
    }
    note_record(in, k);
    if (!k->stalled) {
        if (!k->min_outside || (double)remaining < (double)k->min_outside * (1 - margin)) {
            return false;
        }
        k->stalled = true;
        k->best = k->min_outside;
        for (int i = 0; i < k->n_candidates; i++) {
            k->best = min64(k->best, k->candidates[i].remaining);
        }
        k->n_history = 0;
        k->patience_ms = in->policy->stall.progress_timeout_s * 1000;
        k->relax_ms = in->elapsed_ms + k->patience_ms;
    }
    remember(k, remaining);
    relax(in, k);
    return true;
}

/* ---- stall detection: decisions ----------------------------------------------------------------
 */

static int64_t estimate_ms(const struct strategy_input *in, const struct strategy_kubevirt *k)
{
    return k->bandwidth > 0 ? (int64_t)((double)in->sample.remaining_bytes * 1000 / k->bandwidth)
                            : 0;
}

static bool can_finish(const struct strategy_input *in, const struct strategy_kubevirt *k)
{
    double deadline = (double)k->acceptable_ms * in->policy->stall.completion_factor;

    return k->bandwidth > 0 && (double)in->elapsed_ms + (double)estimate_ms(in, k) <= deadline &&
           (double)in->elapsed_ms <= deadline;
}

static void stop_and_copy(const struct strategy_input *in, struct strategy_kubevirt *k, bool hard,
                          const char *why, struct strategy_decision *ret)
{
    k->switching = true;
    k->switchover_deadline_ms = in->elapsed_ms + in->policy->stall.switchover_timeout_s * 1000;
    ret->downtime_ms = hard ? STRATEGY_DOWNTIME_UNLIMITED_MS : in->policy->max_downtime_ms;
    strategy_act(ret, hard ? STRATEGY_FORCE : STRATEGY_SET_DOWNTIME,
                 "%s: %lld MiB remain, about %lld ms", why,
                 (long long)mib(in->sample.remaining_bytes), (long long)estimate_ms(in, k));
}

static void start_post_copy(const struct strategy_input *in, struct strategy_kubevirt *k,
                            const char *why, struct strategy_decision *ret)
{
    k->switching = true;
    strategy_act(ret, STRATEGY_POST_COPY, "%s: %lld MiB remain", why,
                 (long long)mib(in->sample.remaining_bytes));
}

static void decide_stalled(const struct strategy_input *in, struct strategy_kubevirt *k,
                           struct strategy_decision *ret)
{
    const struct wire_stall *st = &in->policy->stall;
    double margin = (double)st->margin_percent / 100;
    int64_t estimate = estimate_ms(in, k), max = in->policy->max_downtime_ms;

    if (k->switching ||
        (st->search_minima &&
         (double)in->sample.remaining_bytes > (double)k->best * (1 + margin)) ||
        !can_finish(in, k)) {
        return;
    }
    if (in->policy->allow_workload_disruption && may_post_copy(in)) {
        start_post_copy(in, k, "stalled", ret);
    } else if (in->policy->allow_workload_disruption) {
        stop_and_copy(in, k, true, "stalled", ret);
    } else if ((double)estimate <= (double)max * st->possible_factor) {
        stop_and_copy(in, k, false, "stalled near the allowed downtime", ret);
    } else {
        strategy_act(ret, STRATEGY_ABORT_NOT_CONVERGING,
                     "Live migration stalled: %lld MiB remain, which takes %lld ms, the allowed "
                     "downtime is %lld ms",
                     (long long)mib(in->sample.remaining_bytes), (long long)estimate,
                     (long long)max);
    }
}

static void decide_timeout(const struct strategy_input *in, struct strategy_kubevirt *k,
                           struct strategy_decision *ret)
{
    int64_t deadline = in->mode == MODE_PAUSED ? k->acceptable_ms : k->switchover_deadline_ms;

    if (!k->acceptable_ms || in->elapsed_ms <= deadline) {
        return;
    }
    if (!k->switching && can_finish(in, k) && may_post_copy(in)) {
        start_post_copy(in, k, "the granted time is over", ret);
    } else if (!k->switching && can_finish(in, k) && in->policy->allow_workload_disruption) {
        stop_and_copy(in, k, true, "the granted time is over", ret);
        k->acceptable_ms =
            (int64_t)((double)k->acceptable_ms * in->policy->stall.completion_factor);
    } else {
        strategy_act(ret, STRATEGY_ABORT_NOT_CONVERGING,
                     "Live migration is not completed after %lld s and will be aborted, %lld MiB "
                     "remain",
                     (long long)in->elapsed_ms / 1000, (long long)mib(in->sample.remaining_bytes));
    }
}

static void feed_bandwidth(const struct strategy_input *in, struct strategy_kubevirt *k)
{
    double alpha = in->policy->stall.ewma_alpha, fresh = (double)in->sample.bytes_per_s;

    k->bandwidth = k->bandwidth > 0 ? alpha * fresh + (1 - alpha) * k->bandwidth : fresh;
}

static void decide_with_stalls(const struct strategy_input *in, struct strategy_memory *memory,
                               struct strategy_decision *ret)
{
    struct strategy_kubevirt *k = &memory->kubevirt;
    const struct launcher_sample *s = &in->sample;

    if (!memory->started) {
        k->acceptable_ms = k->switchover_deadline_ms = granted_ms(in);
    }
    if (in->last_failed && (memory->last == STRATEGY_POST_COPY || memory->last == STRATEGY_FORCE ||
                            (memory->last == STRATEGY_SET_DOWNTIME && k->switching))) {
        k->switching = false; /* the deadline stays: it must end some time */
    } else if (in->last_failed && memory->last == STRATEGY_SET_DOWNTIME) {
        k->downtime_set = false;
    }
    if (in->mode == MODE_POST_COPY || in->aborting) {
        return;
    }
    if (s->active && !k->downtime_set) {
        k->downtime_set = true;
        k->iteration = s->iteration;
        ret->downtime_ms = min64(in->policy->max_downtime_ms, STRATEGY_DOWNTIME_DEFAULT_MS);
        strategy_act(ret, STRATEGY_SET_DOWNTIME, "initial downtime: %lld ms",
                     (long long)ret->downtime_ms);
        return;
    }
    if (s->active && s->present && s->iteration > 0) {
        bool boundary = s->iteration > k->iteration;

        k->iteration = s->iteration;
        if (boundary && find_stall(in, k)) {
            decide_stalled(in, k, ret);
        } else if (!boundary && in->mode == MODE_PRE_COPY && s->bytes_per_s > 0) {
            feed_bandwidth(in, k);
        }
    }
    if (ret->action == STRATEGY_KEEP) {
        decide_timeout(in, k, ret);
    }
}

void strategy_kubevirt_decide(const struct strategy_input *in, struct strategy_memory *memory,
                              struct strategy_decision *ret)
{
    struct strategy_kubevirt *k = &memory->kubevirt;

    if (!memory->started) {
        *k = (struct strategy_kubevirt){.progress_ms = in->elapsed_ms};
    }
    if (in->policy->stall.on) {
        decide_with_stalls(in, memory, ret);
        return;
    }
    if (in->last_failed && memory->last == STRATEGY_SET_DOWNTIME) {
        k->downtime_set = k->downtime_before > 0;
        k->downtime_ms = k->downtime_before;
    }
    decide_legacy(in, k, ret);
}
