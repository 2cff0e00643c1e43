/* Between object.c, which owns documents and memory, and kinds.c, which knows the fields. */
#pragma once

#include "api/arena.h"
#include "api/kinds.h"
#include "base/error.h"

/* Bytes of `u` that the kind uses. */
size_t api_kind_size(enum api_kind kind);
int api_kind_decode(enum api_kind kind, const yyjson_val *root, struct api_arena *arena,
                    struct api_object *out, struct ferry_error *err);
