/* What a schema cannot say of a spec: amounts are not negative, selectors can select. Kubernetes'
 * own rules, and in its words. Pure. */
#pragma once

#include <yyjson.h>

#include "apiserver/message/status.h"

/* For new objects, and for specs that changed: what is stored may be older than a rule. */
int spec_check(const struct api_resource *r, const char *name, const yyjson_val *object,
               struct status *st);
