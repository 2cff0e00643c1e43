/* The life of a relay process once it relays: what it does about signals.
 *
 *   SIGTERM, SIGINT  takes no new moves and ends when no stream is left; a second one ends it at
 * once. SIGTERM with a descriptor store: the streams go there instead, and it ends. SIGUSR2 starts
 * its successor and hands everything over; without one that takes over it goes on as if nothing had
 * been.
 *
 * One thread. */
#pragma once

#include <stddef.h>

#include "http/server.h"
#include "relay/handover/self.h"
#include "relay/manager/manager.h"

struct relay_life {
    struct relay_manager *manager;
    struct http_server *server; /* the control API, or NULL; may be another one afterwards */
    const struct relay_self *self;
    size_t fd_store; /* room in the service manager's descriptor store, 0 = there is none */
};

/* Signals must be blocked (SIGUSR2 too). Returns when it is time to end; what was handed over is
 * left alone by the ends of manager and server. */
void relay_life_run(struct relay_life *l);
