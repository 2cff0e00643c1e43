#include "api/wire/wire_keys.h"

#include "base/count.h"
#include "base/str.h"

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

bool wire_annotation_is_programs(const char *key)
{
    static const char *const peoples[] = {ANNOTATION_QCOW2, ANNOTATION_PARALLEL,
                                          ANNOTATION_ACCELERATOR};

    if (ferry_streq(key, ANNOTATION_EVACUATION) || ferry_streq(key, ANNOTATION_WORKLOAD_UPDATE)) {
        return true;
    }
    for (size_t i = 0; i < FERRY_COUNT(peoples); i++) {
        if (ferry_streq(key, peoples[i])) {
            return false;
        }
    }
    return ferry_str_starts(key, PREFIX_FERRY);
}
