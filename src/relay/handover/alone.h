/* One side of one move without a node agent: what `ferry-relay source` and `target` run. */
#pragma once

#include "base/error.h"
#include "relay/common/spec.h"
#include "relay/handover/life.h"
#include "tls/credentials.h"

struct relay_alone {
    const struct relay_self *self;
    size_t fd_store; /* as in relay/handover/life.h */
    uint64_t memory; /* as in relay/common/memory.h */
};

/* Takes `spec`, also on failure. Prints "listening ADDRESS:PORT" or "listening unix:PATH" as a line
 * (not when it goes on where another process stopped), then relays as relay/life says.
 * `credentials` may be NULL for plain TCP. Signals must be blocked. */
int relay_alone_run(struct relay_spec *spec_take, struct tls_credentials *credentials,
                    const struct relay_alone *how, struct ferry_error *err);
