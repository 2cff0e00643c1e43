/* One stream over ferry/1: a unix connection and whatever connections to the other relay carry it
 * in the course of time, on the calling thread.
 *
 * When the group pauses, a stream leaves its thread as it is, connection included: another thread
 * goes on with it as if nothing had been, or it is saved for another process and abandoned here. */
#pragma once

#include "relay/state/state.h"
#include "relay/stream/registry.h"
#include "relay/stream/stream.h"

/* A source: takes `unix_fd` (unless RELAY_FRESH), dials. */
enum relay_leave relay_session_run_source(const struct relay_stream *s, int unix_fd,
                                          struct session **ret);
/* A target: takes `fd`, an accepted connection. Proves it and reads its HELLO; then it becomes a
 * new stream, or goes to the stream that it belongs to, or is refused. */
enum relay_leave relay_session_run_target(const struct relay_stream *s, int fd,
                                          struct session **ret);
/* With one that was parked or restored; NULL again when it is over. */
enum relay_leave relay_session_go_on(struct session **x);

/* Of a parked one, all but places and names; the protocol is borrowed. Returns its unix socket. */
int relay_session_save(const struct session *x, struct relay_state_stream *ret);
/* Takes the protocol of `st` and `unix_fd`, which may be -1. NULL: no descriptor left. */
struct session *relay_session_restore(const struct relay_stream *s, struct relay_state_stream *st,
                                      int unix_fd);
/* Forgets it without a word to anybody: somebody else has it. */
void relay_session_abandon(struct session *x);
/* Ends it as an operator would. */
void relay_session_cancel(struct session *x);
