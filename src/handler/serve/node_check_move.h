/* /v1/checks/MIGRATION: looks at what this node has of a move, for node_checks(). Any thread. */
#pragma once

#include "handler/serve/node_api.h"

void node_check_move(struct http_exchange *x, const struct node_api_config *cfg, const char *uid);

/* Whether a port is listened at, by the text of /proc/net/tcp or tcp6. Pure. */
bool node_check_listens(const char *table, int port);
