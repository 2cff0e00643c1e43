#include "apiserver/object/spec_check.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/names.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

enum { FIELD_SIZE = 128, MILLI = 1000 };

struct check {
    const struct api_resource *resource;
    const char *name;
    struct status *st;
};

static int wrong(const struct check *c, const char *field, yyjson_val *value, const char *why)
{
    ferry_cleanup_free char *text = json_doc_val_text(value, 0, NULL);

    return status_invalid(c->st, c->resource, c->name, field, STATUS_VALUE_INVALID, "%.100s: %s",
                          text ? text : "", why);
}

/* ---- amounts -----------------------------------------------------------------------------------
 */

/* Things that are counted one by one. */
static bool is_count(const char *name)
{
    return ferry_streq(name, "pods") || ferry_streq(name, "persistentvolumeclaims") ||
           ferry_str_starts(name, "count/");
}

static int check_amounts(const struct check *c, yyjson_val *map, const char *field)
{
    yyjson_val *key, *v;
    size_t i, max;

    yyjson_obj_foreach(map, i, max, key, v)
    {
        const char *what = yyjson_get_str(key);
        char where[FIELD_SIZE];
        int64_t milli = 0;

        snprintf(where, sizeof(where), "%s[%.60s]", field, what);
        /* Petabytes do not fit in thousandths; they are amounts all the same. */
        if (api_quantity_val(v, MILLI, &milli, NULL) < 0 &&
            api_quantity_val(v, 1, &milli, NULL) < 0) {
            return wrong(c, where, v, "must be a quantity, like 500m, 2 or 1.5Gi");
        }
        if (milli < 0) {
            return wrong(c, where, v, "must be greater than or equal to 0");
        }
        if (is_count(what) && milli % MILLI) {
            return wrong(c, where, v, "must be an integer");
        }
    }
    return 0;
}

static int check_containers(const struct check *c, const yyjson_val *root, const char *list)
{
    static const char *const maps[] = {"requests", "limits"};
    yyjson_val *spec = yyjson_obj_get((yyjson_val *)root, "spec"), *container;
    size_t i, max;

    yyjson_arr_foreach(yyjson_obj_get(spec, list), i, max, container)
    {
        yyjson_val *resources = yyjson_obj_get(container, "resources");

        for (size_t m = 0; m < 2; m++) {
            char field[FIELD_SIZE];

            snprintf(field, sizeof(field), "spec.%s[%zu].resources.%s", list, i, maps[m]);
            if (check_amounts(c, yyjson_obj_get(resources, maps[m]), field) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- selectors ---------------------------------------------------------------------------------
 */

static int check_selector(const struct check *c, yyjson_val *map, const char *field)
{
    yyjson_val *key, *v;
    size_t i, max;

    yyjson_obj_foreach(map, i, max, key, v)
    {
        const char *value = yyjson_get_str(v);

        if (!api_name_is_label_key(yyjson_get_str(key))) {
            return wrong(c, field, key,
                         "not a label key: an optional DNS name and '/', then at most 63 of "
                         "letters, digits, '-', '_' and '.'");
        }
        if (value && !api_name_is_label_value(value)) {
            return wrong(c, field, v,
                         "a valid label must be at most 63 of letters, digits, '-', '_' and '.', "
                         "with a letter or digit at both ends");
        }
    }
    return 0;
}

/* ---- kinds -------------------------------------------------------------------------------------
 */

static const struct {
    const char *plural, *pointer, *field;
    int (*check)(const struct check *c, yyjson_val *map, const char *field);
} rows[] = {
    {"resourcequotas", "/spec/hard", "spec.hard", check_amounts},
    {"persistentvolumes", "/spec/capacity", "spec.capacity", check_amounts},
    {"persistentvolumeclaims", "/spec/resources/requests", "spec.resources.requests",
     check_amounts},
    {"pods", "/spec/nodeSelector", "spec.nodeSelector", check_selector},
    {"virtualmachineinstances", "/spec/nodeSelector", "spec.nodeSelector", check_selector},
    {"virtualmachineinstancemigrations", "/spec/addedNodeSelector", "spec.addedNodeSelector",
     check_selector},
    {"migrationpolicies", "/spec/selectors/namespaceSelector", "spec.selectors.namespaceSelector",
     check_selector},
    {"migrationpolicies", "/spec/selectors/virtualMachineInstanceSelector",
     "spec.selectors.virtualMachineInstanceSelector", check_selector},
};

int spec_check(const struct api_resource *r, const char *name, const yyjson_val *object,
               struct status *st)
{
    const struct check c = {.resource = r, .name = name, .st = st};

    for (size_t i = 0; i < FERRY_COUNT(rows); i++) {
        if (ferry_streq(r->plural, rows[i].plural) &&
            rows[i].check(&c, yyjson_ptr_get((yyjson_val *)object, rows[i].pointer),
                          rows[i].field) < 0) {
            return -1;
        }
    }
    if (r->kind != API_KIND_POD) {
        return 0;
    }
    return check_containers(&c, object, "containers") < 0
               ? -1
               : check_containers(&c, object, "initContainers");
}
