/* One relayed connection from its acceptance to its end, on the calling thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "relay/common/env.h"
#include "relay/common/net.h"
#include "relay/common/spec.h"
#include "relay/protocol/protocol.h"
#include "relay/stream/pump.h"
#include "relay/stream/registry.h"

enum relay_stream_state {
    RELAY_STREAM_CONNECTING, /* identity not proven yet, or the far side not reached */
    RELAY_STREAM_OPEN,
    RELAY_STREAM_AWAY, /* ferry/1: no connection; both ends are held */
    RELAY_STREAM_CLOSING,
};

/* What others may read while the stream runs. */
struct relay_stream_stats {
    struct relay_counters bytes;
    atomic_int state;
    atomic_uint_fast64_t resumes, replayed; /* ferry/1, as all below */
    atomic_int_fast64_t away_ns;            /* since when; 0 = it is not */
    atomic_int_fast64_t rtt_us;             /* 0 = not known */
    atomic_uint_fast64_t rate_in, rate_out; /* bytes per second, of the last second or so */
    atomic_uint_fast64_t held;              /* bytes kept: not yet delivered, here or there */
    atomic_uint_fast32_t window;            /* bytes that the peer may have under way */
    int64_t since_ms;              /* wall clock; set before the stream runs, as are those below */
    char peer[RELAY_NET_NAME];     /* network address of the other relay */
    char local[RELAY_LOCAL_NAME];  /* unix socket that was listened on (source) or is dialled */
    char listener[RELAY_NET_NAME]; /* target: the address that was listened on */
};

struct relay_stream {
    const struct relay_spec *spec;
    const struct relay_channel *channel;
    const struct relay_env *env;
    struct relay_registry *registry; /* of the group */
    struct relay_rate *rate;         /* of the move */
    int stop_fd;                     /* readable = end at once, or pause: */
    const atomic_bool *pausing;      /* leave, so that it can go on elsewhere (ferry/1 only) */
    atomic_bool *slot; /* taken while this connection holds its channel; NULL = any number may */
    struct relay_stream_stats *stats;
    /* A target's connection has proven itself and is to become a stream; false: there is no room
     * for it. */
    bool (*take_place)(void *ctx);
    void *place_ctx;
};

/* How a stream's thread came to its end. */
enum relay_leave {
    RELAY_OVER,
    RELAY_FRESH,  /* paused before anything was done: `fd` is the caller's again */
    RELAY_PARKED, /* paused: to be gone on with from `session` */
};

struct session; /* relay/stream/session.h */

/* Takes `fd`, the accepted connection: unix on a source, TCP on a target; or, with `*session`, goes
 * on with one that was parked. Logs what happened. */
enum relay_leave relay_stream_run(const struct relay_stream *s, int fd, struct session **session);

enum relay_stream_state relay_stream_state_of(enum protocol_state state);
const char *relay_stream_state_name(int state);

#define RELAY_STREAM_FIELDS(s)                                                                     \
    F_STR("role", relay_role_name((s)->spec->role)), F_STR("key", (s)->spec->key),                 \
        F_STR("move", (s)->spec->move), F_INT("channel", (s)->channel->logical),                   \
        F_STR("node", relay_spec_peer((s)->spec)), F_STR("peer", (s)->stats->peer)

/* Where it came in and where it leads. */
#define RELAY_STREAM_WAY(s)                                                                        \
    F_STR("listening",                                                                             \
          (s)->spec->role == RELAY_SOURCE ? (s)->stats->local : (s)->stats->listener),             \
        F_STR("outbound", (s)->spec->role == RELAY_SOURCE ? (s)->stats->peer : (s)->stats->local)

/* A connection that became no stream, and why. Of strangers that come again and again not every one
 * is logged (relay/common/log_limit.h). */
void relay_stream_not_opened(const struct relay_stream *s, const struct ferry_error *err);
