/* Schemas of the core kinds, made of the tables in core_types.c: for kubectl explain, and so that
 * unknown fields and wrong types are met as Kubernetes meets them. Any thread. */
#pragma once

#include <yyjson.h>

#include "api/object.h"
#include "base/str.h"

/* The schema of a kind, all types written out; NULL for a kind that is not in the tables. Lives as
 * long as the program. What is required is not in it: the server's own rules say that. */
const yyjson_val *core_schema(const struct api_resource *r);
/* The types as OpenAPI has them, each by its name and with references to others:
 * `"io.k8s.api.core.v1.PodSpec":{...},"...":{...}`. Kinds are among them. */
void core_schema_components(struct ferry_buf *b);
/* A reference to a type: `"allOf":[{"$ref":"#/components/schemas/..."}]`. */
void core_schema_reference(struct ferry_buf *b, const char *type);
bool core_schema_knows(const struct api_resource *r);
