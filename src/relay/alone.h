/* One side of one move without a node agent: what `ferry-relay source` and `target` run. */
#pragma once

#include "base/error.h"
#include "relay/spec.h"
#include "tls/credentials.h"

/* Takes `spec`, also on failure. Prints "listening ADDRESS:PORT" or "listening unix:PATH" as a
 * line, then relays until a signal, and goes on until no stream is left or a second one.
 * `credentials` may be NULL for plain TCP. Signals must be blocked. */
int relay_alone_run(struct relay_spec *spec_take, struct tls_credentials *credentials,
                    struct ferry_error *err);
