/* The verbs of ferry-relay that work without a node agent. */
#pragma once

#include <stdbool.h>

#include "relay/handover/life.h"

/* `argv[0]` is the verb. Returns the exit status. */
int ferry_relay_alone(bool source, int argc, char **argv, const struct relay_self *self);
