/* The relay's control API (docs/contracts/relay.md): HTTP/JSON on a unix socket. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "http/server.h"
#include "relay/manager/manager.h"

/* Takes `listen_fd`, also on failure; borrows `m`. Callers other than root and this process's own
 * user get 403. End it with http_server_stop(). */
int relay_control_start(int listen_fd, struct relay_manager *m, struct http_server **ret,
                        struct ferry_error *err);
