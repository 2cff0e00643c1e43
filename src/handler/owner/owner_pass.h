/* A reconcile pass over a VMI that this node is the owner of. */
#pragma once

#include "handler/move/pass.h"

int pass_as_owner(struct pass *pass, struct ferry_error *err);
