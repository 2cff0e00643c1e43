/* GET /metrics and /healthz of ferry-controller, on loopback or on a unix socket. */
#pragma once

#include "base/error.h"
#include "control/loops/controller.h"

struct metrics_server;
/* `where`: a port of 127.0.0.1, or an absolute path. */
int metrics_server_start(const char *where, struct metrics_server **ret, struct ferry_error *err);
void metrics_server_stop(struct metrics_server *m); /* takes NULL */
/* Whose figures are served from now on; NULL = nobody's, it stands by. Waits for answers that are
 * being made from the one before. */
void metrics_server_of(struct metrics_server *m, struct controller *controller); /* takes NULL */
