/* What virtctl calls at subresources.kubevirt.io: migrate, start, stop, restart, evacuate/cancel.
 */
#pragma once

#include "apiserver/request.h"

bool subresource_is_path(const char *path);
/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int subresource_serve(struct request *r);
