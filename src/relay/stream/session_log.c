/* What is told of a stream: its statistics while it runs, and a line in the log whenever something
 * became of it. */
#include "relay/stream/session_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "relay/stream/paths.h"

#define STATS_NS (500 * FERRY_NS_PER_MS)
/* A stream that ends sooner than that tells of its path at its end, unless it was too short. */
#define LAST_LOOK_NS (20 * FERRY_NS_PER_MS)

/* What was carried since the last look, per second. */
static void update_rates(struct session *x, const struct protocol_stats *st, int64_t now)
{
    struct relay_stream_stats *out = x->s->stats;
    double s = (double)(now - x->stats_ns) / 1e9;
    uint64_t rate_in = (uint64_t)((double)(st->written - x->stats_in) / s);
    uint64_t rate_out = (uint64_t)((double)(st->acked - x->stats_out) / s);

    atomic_store_explicit(&out->rate_in, rate_in, memory_order_relaxed);
    atomic_store_explicit(&out->rate_out, rate_out, memory_order_relaxed);
    relay_paths_note(x->s->env->paths, x->s->spec->peer_node, rate_in + rate_out,
                     st->rtt_ns / 1000);
    x->stats_ns = now;
    x->stats_in = st->written;
    x->stats_out = st->acked;
}

static void update_stats(struct session *x, int64_t now)
{
    struct relay_stream_stats *out = x->s->stats;
    struct protocol_stats st;

    protocol_stats(x->p, &st);
    uint64_t in = st.written > x->dropped ? st.written - x->dropped : 0;
    atomic_store_explicit(&out->bytes.in, in, memory_order_relaxed);
    atomic_store_explicit(&out->bytes.out, st.read, memory_order_relaxed);
    atomic_store_explicit(&out->bytes.dropped, x->dropped, memory_order_relaxed);
    atomic_store_explicit(&out->resumes, st.resumes, memory_order_relaxed);
    atomic_store_explicit(&out->replayed, st.replayed, memory_order_relaxed);
    atomic_store_explicit(&out->rtt_us, st.rtt_ns / 1000, memory_order_relaxed);
    atomic_store_explicit(&out->window, st.window, memory_order_relaxed);
    atomic_store_explicit(&out->held, st.read - st.acked + st.received - st.written,
                          memory_order_relaxed);
    if (now - x->stats_ns >= STATS_NS) {
        update_rates(x, &st, now);
    }
}

void session_tell_left(struct session *x)
{
    ferry_info(protocol_state(x->p) == PROTOCOL_AWAY
                   ? "the process at the unix socket has left while its stream is away"
                   : "the process at the unix socket has left before its stream opened",
               RELAY_STREAM_FIELDS(x->s), RELAY_STREAM_WAY(x->s));
}

void session_tell_restored(struct session *x)
{
    struct protocol_stats st;

    protocol_stats(x->p, &st);
    update_stats(x, ferry_now_ns());
    atomic_store(&x->s->stats->state, (int)relay_stream_state_of(x->state));
    atomic_store(&x->s->stats->away_ns, x->state == PROTOCOL_AWAY ? st.away_since : 0);
}

void session_tell_changes(struct session *x, int64_t now)
{
    enum protocol_state state = protocol_state(x->p);
    struct protocol_stats st;

    update_stats(x, now);
    protocol_stats(x->p, &st);
    if (state == x->state && st.resumes == x->resumes) {
        return;
    }
    if (state == PROTOCOL_OPEN && !x->opened) {
        x->opened = true;
        ferry_info("stream opened", RELAY_STREAM_FIELDS(x->s), RELAY_STREAM_WAY(x->s));
    } else if (st.resumes != x->resumes) {
        ferry_info("stream resumed", RELAY_STREAM_FIELDS(x->s), F_UINT("resumes", st.resumes),
                   F_INT("awayMs",
                         x->state == PROTOCOL_AWAY ? (now - st.away_since) / FERRY_NS_PER_MS : 0));
    } else if (state == PROTOCOL_AWAY) {
        ferry_warn("stream away: its connection is gone, its ends are held",
                   RELAY_STREAM_FIELDS(x->s), F_STR("reason", protocol_why(x->p)));
    }
    x->state = state;
    x->resumes = st.resumes;
    atomic_store(&x->s->stats->state, (int)relay_stream_state_of(state));
    atomic_store(&x->s->stats->away_ns, state == PROTOCOL_AWAY ? st.away_since : 0);
}

static bool as_expected(const struct protocol_outcome *o)
{
    return o->end == PROTOCOL_FINISHED ||
           (o->end == PROTOCOL_RESET &&
            (o->code == FRAME_RESET_CANCELLED || strcmp(o->text, SESSION_LEFT) == 0));
}

static void describe_end(const struct protocol_outcome *o, char *buf, size_t n)
{
    if (o->end == PROTOCOL_FINISHED) {
        snprintf(buf, n, "both sides ended");
    } else if (o->end == PROTOCOL_RESET && strcmp(o->text, SESSION_LEFT) == 0) {
        snprintf(buf, n, o->by_peer ? "peer closed" : "local side closed");
    } else {
        snprintf(buf, n, "%s%s: %s", o->by_peer ? "by the peer: " : "", protocol_end_name(o->end),
                 o->text);
    }
}

void session_tell_end(struct session *x)
{
    const struct protocol_outcome *o = protocol_outcome(x->p);
    const struct relay_stream_stats *st = x->s->stats;
    bool expected = as_expected(o);
    char reason[FRAME_TEXT_MAX + 64];

    describe_end(o, reason, sizeof(reason));
    if (!x->opened) {
        FERRY_LOG(expected ? FERRY_LOG_INFO : FERRY_LOG_WARN, "stream not opened",
                  RELAY_STREAM_FIELDS(x->s), F_STR("error", reason));
        return;
    }
    struct protocol_stats last;
    int64_t now = ferry_now_ns();
    protocol_stats(x->p, &last);
    if (now - x->stats_ns >= LAST_LOOK_NS) {
        update_rates(x, &last, now);
    }
    FERRY_LOG(expected ? FERRY_LOG_INFO : FERRY_LOG_WARN, "stream closed",
              RELAY_STREAM_FIELDS(x->s), F_UINT("bytesIn", atomic_load(&st->bytes.in)),
              F_UINT("bytesOut", atomic_load(&st->bytes.out)), F_UINT("dropped", x->dropped),
              F_UINT("resumes", x->resumes), F_UINT("replayed", atomic_load(&st->replayed)),
              F_INT("ms", (now - x->born_ns) / FERRY_NS_PER_MS), RELAY_STREAM_WAY(x->s),
              F_STR("reason", reason));
}
