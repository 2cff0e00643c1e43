/* Structural schemas as custom resource definitions have them: what is not in the schema goes,
 * defaults come, the rest is checked, in Kubernetes' words. Rules in CEL are not run: those that
 * our kinds have are part of admission; but one that is `false` refuses, with its message. Pure. */
#pragma once

#include <yyjson.h>

#include "apiserver/message/status.h"
#include "base/str.h"

/* `schema` may be NULL: then nothing is known and nothing is done. */

/* Paths of the fields that the schema does not have, each as `unknown field "spec.x"`, ", " between
 * them. */
void schema_unknown(const yyjson_val *schema, yyjson_mut_val *object, struct ferry_buf *ret);
/* Removes them, and nulls where none may be; adds defaults. metadata is not touched. */
void schema_complete(const yyjson_val *schema, yyjson_mut_doc *doc);
/* 422 naming the first field that is wrong. `old`, or NULL: the object as it was; what it had is
 * not wrong. */
int schema_validate(const yyjson_val *schema, const struct api_resource *r, const char *name,
                    yyjson_mut_val *object, const yyjson_val *old, struct status *st);
