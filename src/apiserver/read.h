/* Get and list. Each answers the exchange and returns 0, or fills r->st and returns -1. */
#pragma once

#include "apiserver/request.h"

int read_get(struct request *r);
int read_list(struct request *r);
