/* Pod eviction (policy/v1): a pod with a machine in it is not deleted, its machine is asked to
 * leave; everything else is deleted. */
#pragma once

#include "apiserver/request/request.h"

/* Answers the exchange and returns 0, or fills r->st and returns -1. */
int eviction_serve(struct request *r);
