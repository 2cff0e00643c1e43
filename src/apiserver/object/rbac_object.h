/* Roles and bindings as Kubernetes takes them: what it fills in, what it refuses. Pure. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "apiserver/message/status.h"

bool rbac_object_is(const struct api_resource *r);
/* Their names may have capital letters and colons: "system:discovery". */
bool rbac_object_name_is_good(const char *name);
void rbac_object_default(yyjson_mut_doc *doc);
/* `old` is NULL for a new object. */
int rbac_object_check(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                      struct status *st);
