/* The table of fields (api/spec) as admission asks it: VirtualMachines and their instances. Pure.
 */
#pragma once

#include <yyjson.h>

#include "apiserver/message/status.h"

/* 422 naming the fields that cannot be had; 0 for other kinds. `old` NULL: the object is new. */
int machine_check(const struct api_resource *r, const char *name, const yyjson_val *old,
                  const yyjson_val *object, struct status *st);
/* Says which fields have no effect. */
void machine_check_warn(const struct api_resource *r, const yyjson_val *old,
                        const yyjson_val *object, void (*say)(void *ctx, const char *text),
                        void *ctx);
