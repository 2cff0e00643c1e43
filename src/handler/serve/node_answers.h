/* What the node API answers. Any thread. */
#pragma once

#include "handler/serve/node_api.h"

/* Answers one call of a caller who may. */
void node_answer(struct http_exchange *x, const struct node_api_config *cfg);
