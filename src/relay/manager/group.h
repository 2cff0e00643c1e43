/* One side of one move at work: its listeners, the thread that accepts on them, and a thread per
 * accepted connection. */
#pragma once

#include <stddef.h>

#include <yyjson.h>

#include "base/error.h"
#include "relay/common/env.h"
#include "relay/common/spec.h"
#include "relay/state/fds.h"
#include "relay/state/state.h"

struct relay_group;

/* Takes `spec`, also on failure. Borrows `env`. When it returns, connections are accepted.
 */
int relay_group_start(struct relay_spec *spec_take, const struct relay_env *env,
                      struct relay_group **ret, struct ferry_error *err);
/* Stops accepting, removes the socket files, ends every stream, waits for their threads, frees. */
void relay_group_stop(struct relay_group *g);

/* ---- changing the process (group_handover.c). Not to be called by two threads at once. ---- */

/* Accepts no more; streams over ferry/1 stand still, others go on. */
void relay_group_pause(struct relay_group *g);
/* Goes on as if nothing had been; also begins the life of a restored group. */
void relay_group_resume(struct relay_group *g);
/* While paused; spec and protocols are borrowed, descriptors are added to `fds`. */
void relay_group_save(struct relay_group *g, struct relay_state_group *ret, struct relay_fds *fds);
/* Takes what it needs out of `from` and `fds`. The group is paused. */
int relay_group_restore(struct relay_state_group *from, struct relay_fds *fds,
                        const struct relay_env *env, struct relay_group **ret,
                        struct ferry_error *err);
/* Somebody else has what was saved: forgets it, leaves socket files alone. Streams that were not
 * saved (raw, plain) go on; relay_group_stop() ends them. */
void relay_group_abandon(struct relay_group *g);

const struct relay_spec *relay_group_spec(const struct relay_group *g);
size_t relay_group_stream_count(struct relay_group *g);
/* The port of the first channel. */
int relay_group_port(const struct relay_group *g);
/* Not to be called by two threads at once. */
void relay_group_set_rate(struct relay_group *g, uint64_t bytes_per_s);

/* Sums over the streams of a move, for overviews. */
struct relay_group_sums {
    size_t open, away;
    uint64_t streams, bytes_in, bytes_out, rate_in, rate_out, replayed, resumes;
    int64_t rtt_us;   /* the shortest; 0 = none is known */
    int64_t away_ns;  /* the longest ago */
    int64_t since_ms; /* the oldest stream; 0 = none */
};
/* Adds to `*sums`; streams that are over are not in it, but in the totals of the environment. */
void relay_group_sum(struct relay_group *g, struct relay_group_sums *sums);

/* What GET and PUT answer: adds fields to `obj`. */
void relay_group_describe(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *obj);
/* Adds one object per stream to the array `list`. */
void relay_group_describe_streams(struct relay_group *g, yyjson_mut_doc *doc, yyjson_mut_val *list);
