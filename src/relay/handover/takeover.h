/* The start of a relay that goes on where another one stopped: a predecessor that is still there
 * (relay/handover), or one whose state a service manager has kept (relay/notify).
 *
 *   relay_takeover_look()     before anything is opened
 *   relay_takeover_restore()  when all else is ready; the manager is paused afterwards
 *   relay_takeover_commit()   from here on this is the relay: relay_manager_resume() */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "relay/manager/manager.h"

enum relay_takeover_from { RELAY_FROM_NOBODY, RELAY_FROM_PREDECESSOR, RELAY_FROM_STORE };

struct relay_takeover {
    enum relay_takeover_from from;
    int socket; /* to the predecessor */
    struct relay_state state;
    struct relay_fds fds;
    size_t n_stored;
};

/* What a service manager kept and cannot be used is logged and forgotten: then it is NOBODY. */
void relay_takeover_look(struct relay_takeover *t);
/* `*ret_control`: the listening control socket, or -1 if `alone`. */
int relay_takeover_restore(struct relay_takeover *t, bool alone, struct relay_manager *m,
                           int *ret_control, struct ferry_error *err);
int relay_takeover_commit(struct relay_takeover *t, struct relay_manager *m,
                          struct ferry_error *err);
void relay_takeover_done(struct relay_takeover *t);
