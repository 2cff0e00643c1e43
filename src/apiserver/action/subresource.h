/* What virtctl calls at subresources.kubevirt.io: migrate, start, stop, restart, pause, unpause,
 * evacuate/cancel. */
#pragma once

#include "apiserver/action/node_proxy.h"
#include "apiserver/request/request.h"

bool subresource_is_path(const char *path);
/* Before the body is read: whether the caller may send one. Fills r->st and returns -1 if not. */
int subresource_check(struct request *r);
/* Answers the exchange and returns 0, or fills r->st and returns -1. `nodes`: the way to what only
 * a node can do; may be NULL. */
int subresource_serve(struct request *r, struct node_proxy *nodes);
