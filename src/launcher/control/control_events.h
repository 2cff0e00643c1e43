/* GET /v1/events of the launcher: a stream of JSON lines that follows the events. */
#pragma once

#include "http/server.h"
#include "launcher/report/events.h"

/* Begins with those after ?since=N that are still kept. `events` must outlive the server. */
void control_events(struct http_exchange *x, struct events *events);
