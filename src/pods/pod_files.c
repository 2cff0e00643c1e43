#include "pods/pod_files.h"

#include <stdlib.h>
#include <string.h>

#include "api/base64.h"
#include "api/object.h"
#include "base/str.h"

enum { NAME_BYTES = 253 };

static yyjson_val *field(const yyjson_val *v, const char *name)
{
    return yyjson_obj_get((yyjson_val *)(uintptr_t)v, name);
}

bool pod_files_is_name(const char *name)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = name ? strlen(name) : 0;

    return n >= 1 && n <= NAME_BYTES && strspn(name, chars) == n && !ferry_streq(name, ".") &&
           !ferry_str_starts(name, "..");
}

static const char *kind_name(const struct pod_volume *v)
{
    return v->kind == POD_VOLUME_SECRET ? "secret" : "configmap";
}

static int add_file(const struct pod_volume *v, const char *name, yyjson_val *value, bool encoded,
                    struct pod_files *ret, struct ferry_error *err)
{
    const char *text = yyjson_get_str(value);
    size_t len = yyjson_get_len(value);
    struct pod_file f = {.name = name};

    if (!pod_files_is_name(name)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': a key of %s '%s' cannot be the name of a file", v->name,
                          kind_name(v), v->source);
    }
    if (!text || (encoded && !api_base64_decode(text, len, &f.data, &f.n))) {
        return ferry_fail(err, FERRY_INVALID, "volume '%s': key '%s' of %s '%s' cannot be read",
                          v->name, name, kind_name(v), v->source);
    }
    if (!encoded) {
        f.data = ferry_xcalloc(1, len + 1);
        memcpy(f.data, text, len);
        f.n = len;
    }
    ret->list = ferry_xrealloc(ret->list, ret->n + 1, sizeof(*ret->list));
    ret->list[ret->n++] = f;
    ret->bytes += f.n;
    if (ret->n > POD_FILES_MAX || ret->bytes > POD_FILES_BYTES) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': %s '%s' has more than %d files or %d bytes", v->name,
                          kind_name(v), v->source, POD_FILES_MAX, POD_FILES_BYTES);
    }
    return 0;
}

/* Where the values of an object are; `encoded` says which of them are base64. */
static size_t maps_of(const struct pod_volume *v, const yyjson_val *object, yyjson_val *ret[2],
                      bool encoded[2])
{
    ret[0] = field(object, "data");
    encoded[0] = v->kind == POD_VOLUME_SECRET;
    ret[1] = field(object, "binaryData");
    encoded[1] = true;
    return v->kind == POD_VOLUME_SECRET ? 1 : 2;
}

static int add_all(const struct pod_volume *v, const yyjson_val *object, struct pod_files *ret,
                   struct ferry_error *err)
{
    yyjson_val *maps[2], *key, *value;
    bool encoded[2];
    size_t n = maps_of(v, object, maps, encoded), i, max;

    for (size_t m = 0; m < n; m++) {
        yyjson_obj_foreach(maps[m], i, max, key, value)
        {
            int rc = add_file(v, yyjson_get_str(key), value, encoded[m], ret, err);

            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

static int add_item(const struct pod_volume *v, const yyjson_val *object, const yyjson_val *item,
                    struct pod_files *ret, struct ferry_error *err)
{
    const char *key = api_json_str(item, "/key"), *path = api_json_str(item, "/path");
    yyjson_val *maps[2];
    bool encoded[2];
    size_t n = maps_of(v, object, maps, encoded);

    for (size_t m = 0; m < n; m++) {
        yyjson_val *value = field(maps[m], key);

        if (value) {
            return add_file(v, path, value, encoded[m], ret, err);
        }
    }
    return v->optional ? 0
                       : ferry_fail(err, FERRY_RETRY,
                                    "volume '%s': %s '%s' references non-existent key '%s'",
                                    v->name, kind_name(v), v->source, key);
}

int pod_files_plan(const struct pod_volume *v, const yyjson_val *object, struct pod_files *ret,
                   struct ferry_error *err)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)(uintptr_t)v->items);
    int rc = 0;

    if (!object) {
        return v->optional ? 0
                           : ferry_fail(err, FERRY_RETRY, "volume '%s': %s '%s' not found", v->name,
                                        kind_name(v), v->source);
    }
    if (!v->items) {
        return add_all(v, object, ret, err);
    }
    for (yyjson_val *item; rc == 0 && (item = yyjson_arr_iter_next(&it));) {
        rc = add_item(v, object, item, ret, err);
    }
    return rc;
}

void pod_files_done(struct pod_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        explicit_bzero(f->list[i].data, f->list[i].n);
        free(f->list[i].data);
    }
    free(f->list);
    *f = (struct pod_files){0};
}
