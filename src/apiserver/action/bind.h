/* The "binding" of a pod: it gets its node, once. */
#pragma once

#include "apiserver/request/request.h"

/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int bind_serve(struct request *r);
