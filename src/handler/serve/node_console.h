/* The serial line of a guest, for the node API. Any thread. */
#pragma once

#include "handler/serve/node_api.h"

/* GET /v1/console/NAMESPACE/NAME[?tail=BYTES][&follow=true]: the end of what the guest wrote, and
 * with `follow` what it writes from then on, until its pod is gone or the caller leaves. */
void node_console_read(struct http_exchange *x, const struct node_api_config *cfg, const char *vm);

/* POST /v1/console/NAMESPACE/NAME: types the body. */
void node_console_write(struct http_exchange *x, const struct node_api_config *cfg, const char *vm);
