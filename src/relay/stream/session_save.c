/* A parked stream as values, and back: for the process that takes it over. */
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "relay/stream/session_priv.h"

int relay_session_save(const struct session *x, struct relay_state_stream *ret)
{
    ret->born_ns = x->born_ns;
    ret->eof = x->eof;
    ret->deaf = x->deaf;
    ret->hup = x->hup;
    ret->opened = x->opened;
    ret->has_slot = x->has_slot;
    ret->dropped = x->dropped;
    ret->p = x->p;
    return x->unix_fd;
}

struct session *relay_session_restore(const struct relay_stream *s, struct relay_state_stream *st,
                                      int unix_fd)
{
    struct session *x = session_new(s);
    struct protocol_stats stats;

    x->p = ferry_take_ptr(st->p);
    x->unix_fd = unix_fd;
    protocol_stats(x->p, &stats);
    if (s->spec->role == RELAY_TARGET) {
        x->live = relay_registry_restore(s->registry, protocol_id(x->p), s->spec->move,
                                         (uint32_t)s->channel->logical, stats.epoch);
        if (!x->live) {
            relay_session_abandon(x);
            return NULL;
        }
    }
    x->born_ns = st->born_ns;
    x->eof = st->eof;
    x->deaf = st->deaf;
    x->hup = st->hup;
    x->opened = st->opened;
    x->dropped = st->dropped;
    x->resumes = stats.resumes;
    x->stats_in = stats.written;
    x->stats_out = stats.acked;
    x->state = protocol_state(x->p);
    if (st->has_slot && s->slot) {
        atomic_store(s->slot, true);
        x->has_slot = true;
    }
    session_tell_restored(x);
    return x;
}

void relay_session_abandon(struct session *x)
{
    relay_link_close(&x->link);
    ferry_closep(&x->unix_fd);
    if (x->live) {
        relay_registry_abandon(x->s->registry, x->live);
    }
    protocol_free(x->p);
    free(x);
}

void relay_session_cancel(struct session *x)
{
    protocol_cancel(x->p, "ended by its node agent or operator", ferry_now_ns());
    session_finish(x);
    free(x);
}
