/* The custom resource definitions that go to Kubernetes (deploy/kubernetes/crds), read at the
 * start, so that both engines take, refuse, complete and show these kinds alike. Loaded once,
 * before anything is served; any thread may read after that. */
#pragma once

#include <yyjson.h>

#include "api/object.h"
#include "base/error.h"

/* Reads every *.yaml of the directory. -FERRY_NOT_FOUND when there is no such directory. */
int crds_load(const char *dir, struct ferry_error *err);
void crds_unload(void);

/* spec.versions[].schema.openAPIV3Schema, or NULL for a kind without. */
const yyjson_val *crds_schema(const struct api_resource *r);
/* The same; of a core kind, the one that is built in (core_schema.h). */
const yyjson_val *crds_any_schema(const struct api_resource *r);
/* additionalPrinterColumns, or NULL. */
const yyjson_val *crds_columns(const struct api_resource *r);
