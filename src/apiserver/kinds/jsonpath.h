/* The JSON paths of printer columns: .a.b, ['a'], [0], [?(@.k=="v")], "\." for a dot in a key.
 * Pure. */
#pragma once

#include <yyjson.h>

/* The first value that the path leads to; NULL when there is none or the path is not understood. */
const yyjson_val *jsonpath_first(const yyjson_val *v, const char *path);
