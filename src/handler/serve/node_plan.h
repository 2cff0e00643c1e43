/* What a move would be like, for the node API. Any thread. */
#pragma once

#include "handler/serve/node_api.h"

/* POST /v1/plan/NAMESPACE/NAME {to, configuration}: the launcher's plan
 * (docs/contracts/node-api.md), made with the rate that this node's relay last had on the way to
 * node `to`, and that rate. */
void node_plan(struct http_exchange *x, const struct node_api_config *cfg, const char *vm);
