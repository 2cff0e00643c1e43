/* Kubernetes' protobuf bodies. kubectl sends them from its built-in creators (create namespace,
 * create configmap, create secret, drain) and has no other way; so these few kinds are understood.
 * Pure. */
#pragma once

#include <stddef.h>
#include <yyjson.h>

#include "base/error.h"

/* The object in `body` as JSON. -FERRY_INVALID: malformed; -FERRY_NOT_FOUND: a kind that is not
 * known in this form. Fields that Ferry has no use for are left out. */
int protobuf_parse(const void *body, size_t len, yyjson_mut_doc **ret, struct ferry_error *err);
