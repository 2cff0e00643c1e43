/* A reconcile pass over a VMI that this node is the source of. */
#pragma once

#include "handler/move/pass.h"

int pass_as_source(struct pass *pass, struct ferry_error *err);
