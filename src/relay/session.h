/* One stream over ferry/1: a unix connection and whatever connections to the other relay carry it
 * in the course of time, on the calling thread. */
#pragma once

#include "relay/registry.h"
#include "relay/stream.h"

/* A source: takes `unix_fd`, dials. */
void relay_session_run_source(const struct relay_stream *s, int unix_fd);
/* A target: takes `fd`, an accepted connection. Proves it and reads its HELLO; then it becomes a
 * new stream, or goes to the stream that it belongs to, or is refused. */
void relay_session_run_target(const struct relay_stream *s, int fd);
