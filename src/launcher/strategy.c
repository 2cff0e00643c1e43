#include "launcher/strategy.h"

#include <stdio.h>

#define GIB (INT64_C(1) << 30)

/* Progress is a new low of what remains; bytes that are merely sent again are not, except while
 * nothing is known yet. */
static void note_progress(const struct strategy_input *in, struct strategy_memory *m)
{
    const struct sample *s = &in->sample;

    if (!m->started) {
        *m = (struct strategy_memory){.started = true, .progress_ms = in->elapsed_ms};
    }
    if (!s->present) {
        return;
    }
    bool first = m->least_remaining_bytes == 0 && s->remaining_bytes > 0;
    bool lower = s->remaining_bytes < m->least_remaining_bytes;
    bool sending = s->iteration <= 1 && s->processed_bytes > m->seen_processed_bytes;
    if (first || lower || sending) {
        m->progress_ms = in->elapsed_ms;
    }
    if (first || lower) {
        m->least_remaining_bytes = s->remaining_bytes;
    }
    m->seen_processed_bytes = s->processed_bytes;
}

void strategy_decide(const struct strategy_input *in, struct strategy_memory *memory,
                     struct strategy_decision *ret)
{
    const struct migrate_options *p = in->policy;
    int64_t gib = (in->guest_bytes + GIB - 1) / GIB;
    int64_t allowed_ms = p->completion_timeout_per_gib_s * (gib > 0 ? gib : 1) * 1000;

    *ret = (struct strategy_decision){.action = STRATEGY_KEEP};
    note_progress(in, memory);
    int64_t idle_ms = in->elapsed_ms - memory->progress_ms;
    if (p->progress_timeout_s && idle_ms > p->progress_timeout_s * 1000) {
        ret->action = STRATEGY_ABORT_STUCK;
        snprintf(ret->why, sizeof(ret->why),
                 "Live migration is stuck: no progress for %lld s (limit %lld s), %lld MiB remain",
                 (long long)(idle_ms / 1000), (long long)p->progress_timeout_s,
                 (long long)(in->sample.remaining_bytes >> 20));
    } else if (p->completion_timeout_per_gib_s && in->elapsed_ms > allowed_ms) {
        ret->action = STRATEGY_ABORT_NOT_CONVERGING;
        snprintf(ret->why, sizeof(ret->why),
                 "Live migration is not completed after %lld s (limit %lld s): %lld MiB remain, "
                 "%lld MiB/s sent, %lld MiB/s dirtied",
                 (long long)(in->elapsed_ms / 1000), (long long)(allowed_ms / 1000),
                 (long long)(in->sample.remaining_bytes >> 20),
                 (long long)(in->sample.bytes_per_s >> 20),
                 (long long)(in->sample.dirty_bytes_per_s >> 20));
    }
}
