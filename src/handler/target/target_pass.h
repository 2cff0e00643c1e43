/* A reconcile pass over a VMI that this node is the target of. */
#pragma once

#include "handler/move/pass.h"

int pass_as_target(struct pass *pass, struct ferry_error *err);
