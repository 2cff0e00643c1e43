/* Instance types, preferences, and the VirtualMachines that name them. Pure. */
#pragma once

#include "api/instancetype/matcher.h"
#include "apiserver/message/status.h"

/* `named` is what a VirtualMachine names, or the copy that it has; NULL where there is none: the
 * controller says so when it starts the machine, as KubeVirt does. `old` is NULL of a new one.
 * Takes objects of other kinds. */
int sizing_check(const struct api_resource *r, const char *name, const yyjson_val *old,
                 const yyjson_val *object, const yyjson_val *const named[MATCHER_COUNT],
                 struct status *st);
