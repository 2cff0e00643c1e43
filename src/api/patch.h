/* What patches do to an object. Pure: a document in, the same document changed. */
#pragma once

#include <yyjson.h>

#include "base/error.h"

enum {
    API_PATCH_MAX_OPERATIONS = 10000,
    API_PATCH_MAX_COPIED = 100000, /* values that "copy" operations may add, all together */
};

/* JSON Patch (RFC 6902) on the root of `doc`; on failure `doc` is half patched, drop it.
 * -FERRY_INVALID: the patch is malformed; -FERRY_CONFLICT: a test did not hold; -FERRY_NOT_FOUND: a
 * path leads nowhere. The message names the operation and its path. */
int api_patch_apply_json(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err);

/* Merge patch (RFC 7386). */
int api_patch_apply_merge(yyjson_mut_doc *doc, const yyjson_val *patch, struct ferry_error *err);

/* Strategic merge patch as kubectl sends it for core kinds: lists that have a merge key (see the
 * table in strategic.c) are merged by it, other lists are replaced; the directives $patch,
 * $retainKeys, $setElementOrder and $deleteFromPrimitiveList are understood or, where they only
 * order things, passed over. */
int api_patch_apply_strategic(yyjson_mut_doc *doc, const yyjson_val *patch,
                              struct ferry_error *err);
