#include "api/wire/wire_keys.h"

static const char *of_metadata(const yyjson_val *object, const char *map, const char *key)
{
    yyjson_val *meta = yyjson_obj_get((yyjson_val *)object, "metadata");

    return yyjson_get_str(yyjson_obj_get(yyjson_obj_get(meta, map), key));
}

const char *wire_label(const yyjson_val *object, const char *key)
{
    return of_metadata(object, "labels", key);
}

const char *wire_annotation(const yyjson_val *object, const char *key)
{
    return of_metadata(object, "annotations", key);
}
