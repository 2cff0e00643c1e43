/* Whether a node that stopped reporting is still to be believed. Pure. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"

enum { NODE_SILENCE_MS = 40000 };

/* `silent_ms`: how long ago the caller saw the heartbeat change, by its own clock, so that the
 * clocks of nodes do not matter. */
void node_decide(const struct api_object *node, int64_t silent_ms, int64_t now_ms,
                 struct plan *ret);
