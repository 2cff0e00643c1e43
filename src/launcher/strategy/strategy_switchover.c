/* Theory of operation. QEMU switches over when what remains, divided by what it believes the path
 * carries, fits into the allowed downtime. Left alone it believes what went into its socket in the
 * last tenth of a second, which is often far too little (a pause between rounds) and sometimes too
 * much (buffers on the way). The relay knows better: what the peer has confirmed of this very move.
 *
 * A belief that is too high makes the guest stand still for longer than it may, one that is too low
 * only costs another round. So QEMU is told the least of several measurements, and only when they
 * agree; when the path gets slower it is told at once, and it is left to its own estimate when they
 * do not agree, when none came for a while, or when the path is away. */
#include "launcher/strategy/strategy_priv.h"

enum {
    FRESH_MS = 3000,      /* older measurements say nothing of the path */
    AGREE_PERCENT = 25,   /* that the best may be above the least */
    SLOWER_PERCENT = 80,  /* of what QEMU was told: it must know */
    FASTER_PERCENT = 125, /* likewise: it is worth telling */
};

static void take_measurement(const struct strategy_input *in, struct strategy_switchover *w)
{
    bool fresh = in->path_bytes_per_s > 0 && in->elapsed_ms - in->path_measured_ms <= FRESH_MS;

    if (in->path_away || !fresh) {
        w->n = 0;
        return;
    }
    if (w->n && in->path_measured_ms == w->measured_ms) {
        return;
    }
    w->was_measured = true;
    w->measured_ms = in->path_measured_ms;
    w->measured[w->next] = in->path_bytes_per_s;
    w->next = (w->next + 1) % STRATEGY_MEASUREMENTS;
    w->n += w->n < STRATEGY_MEASUREMENTS;
}

/* What the path carries for sure; 0 when nobody knows. `*ret_least`: of what was measured. */
static int64_t carried(const struct strategy_switchover *w, int64_t *ret_least)
{
    int64_t least = INT64_MAX, most = 0;

    for (int i = 1; i <= w->n; i++) {
        int64_t at = w->measured[(w->next + STRATEGY_MEASUREMENTS - i) % STRATEGY_MEASUREMENTS];

        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    *ret_least = w->n ? least : 0;
    return w->n == STRATEGY_MEASUREMENTS && most - least <= least / 100 * AGREE_PERCENT ? least : 0;
}

static void tell(struct strategy_switchover *w, int64_t bytes_per_s, struct strategy_decision *ret)
{
    if (bytes_per_s) {
        strategy_act(ret, STRATEGY_SET_SWITCHOVER,
                     "the relay measures %lld MiB/s: QEMU reckons with that for the switch-over",
                     (long long)(bytes_per_s >> 20));
    } else {
        strategy_act(ret, STRATEGY_SET_SWITCHOVER,
                     "the path no longer carries %lld MiB/s for sure: QEMU reckons with its own "
                     "estimate for the switch-over",
                     (long long)(w->told >> 20));
    }
    ret->bytes_per_s = bytes_per_s;
    w->told_before = w->told;
    w->told = bytes_per_s;
}

void strategy_switchover_decide(const struct strategy_input *in, struct strategy_memory *memory,
                                struct strategy_decision *ret)
{
    struct strategy_switchover *w = &memory->switchover;
    int64_t least, sure;

    if (!memory->started) {
        *w = (struct strategy_switchover){.told = in->policy->path_bytes_per_s};
    }
    if (in->last_failed && memory->last == STRATEGY_SET_SWITCHOVER) {
        w->told = w->told_before;
        w->refused = true; /* a QEMU that does not know it, or that hangs: not again and again */
    }
    take_measurement(in, w);
    /* Where nobody measures, what QEMU was told at the start is the caller's business. */
    if (!w->was_measured || ret->action != STRATEGY_KEEP || w->refused || in->aborting ||
        !in->sample.active || in->mode != MODE_PRE_COPY) {
        return;
    }
    sure = carried(w, &least);
    bool slower = w->told && least < w->told / 100 * SLOWER_PERCENT;
    bool faster = sure > 0 && sure >= w->told / 100 * FASTER_PERCENT;
    if (slower || faster) {
        tell(w, sure, ret);
    }
}
