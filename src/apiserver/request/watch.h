/* Watch: answers the exchange with a stream and returns 0, or fills r->st and returns -1. */
#pragma once

#include "apiserver/request/request.h"

int watch_serve(struct request *r);
