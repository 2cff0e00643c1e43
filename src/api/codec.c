#include "api/codec.h"

#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/kinds.h"
#include "api/object.h"
#include "base/str.h"

static void *at(void *out, size_t offset)
{
    return (char *)out + offset;
}

static int wrong(const struct api_field *f, const char *what, struct ferry_error *err)
{
    return ferry_fail(err, FERRY_INVALID, "%s: must be %s", f->path, what);
}

static int get_string(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_str(v)) {
        return wrong(f, "a string", err);
    }
    *(const char **)at(out, f->offset) = yyjson_get_str(v);
    return 0;
}

static int get_bool(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_bool(v)) {
        return wrong(f, "true or false", err);
    }
    *(bool *)at(out, f->offset) = yyjson_get_bool(v);
    return 0;
}

static int get_int(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    return api_json_get_int(v, at(out, f->offset)) ? 0 : wrong(f, "a whole number", err);
}

static int get_time(const struct api_field *f, yyjson_val *v, void *out, struct ferry_error *err)
{
    if (!yyjson_is_str(v)) {
        return wrong(f, "a time", err);
    }
    if (api_time_parse(yyjson_get_str(v), at(out, f->offset), err) < 0) {
        return ferry_wrap(err, "%s", f->path);
    }
    return 0;
}

static int get_quantity(const struct api_field *f, yyjson_val *v, void *out,
                        struct ferry_error *err)
{
    if (api_quantity_val(v, f->arg, at(out, f->offset), err) < 0) {
        return ferry_wrap(err, "%s", f->path);
    }
    return 0;
}

static int get_map(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                   struct ferry_error *err)
{
    struct api_map *map = at(out, f->offset);
    yyjson_val *key, *val;
    size_t i, max;

    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object of strings", err);
    }
    struct api_pair *items = api_arena_alloc(arena, yyjson_obj_size(v), sizeof(*items));
    yyjson_obj_foreach(v, i, max, key, val)
    {
        if (!yyjson_is_str(val)) {
            return ferry_fail(err, FERRY_INVALID, "%s[%.200s]: must be a string", f->path,
                              yyjson_get_str(key));
        }
        items[i] = (struct api_pair){.key = yyjson_get_str(key), .value = yyjson_get_str(val)};
    }
    *map = (struct api_map){.items = items, .n = yyjson_obj_size(v)};
    return 0;
}

static int get_strings(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                       struct ferry_error *err)
{
    struct api_strings *list = at(out, f->offset);
    yyjson_val *val;
    size_t i, max;

    if (!yyjson_is_arr(v)) {
        return wrong(f, "a list of strings", err);
    }
    const char **items = api_arena_alloc(arena, yyjson_arr_size(v), sizeof(*items));
    yyjson_arr_foreach(v, i, max, val)
    {
        if (!yyjson_is_str(val)) {
            return ferry_fail(err, FERRY_INVALID, "%s[%zu]: must be a string", f->path, i);
        }
        items[i] = yyjson_get_str(val);
    }
    *list = (struct api_strings){.items = items, .n = yyjson_arr_size(v)};
    return 0;
}

/* {"43117": 49152, ...}: TCP port to logical channel. */
static int get_ports(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                     struct ferry_error *err)
{
    yyjson_val *key, *val;
    size_t i, max;

    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object of port numbers", err);
    }
    struct api_port *items = api_arena_alloc(arena, yyjson_obj_size(v), sizeof(*items));
    yyjson_obj_foreach(v, i, max, key, val)
    {
        const char *name = yyjson_get_str(key);
        int64_t logical;
        long long port;

        if (ferry_parse_int(name, 1, 65535, &port, NULL) < 0) {
            return ferry_fail(err, FERRY_INVALID, "%s[%.200s]: must be a port number", f->path,
                              name);
        }
        if (!api_json_get_int(val, &logical) || logical < 0 || logical > 65535) {
            return ferry_fail(err, FERRY_INVALID, "%s[%.200s]: must be a number from 0 to 65535",
                              f->path, name);
        }
        items[i] = (struct api_port){.port = (int)port, .logical = (int)logical};
    }
    *(const struct api_port **)at(out, f->offset) = items;
    *(size_t *)at(out, f->count_offset) = yyjson_obj_size(v);
    return 0;
}

static int get_list(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                    struct ferry_error *err)
{
    yyjson_val *val;
    size_t i, max;

    if (!yyjson_is_arr(v)) {
        return wrong(f, "a list", err);
    }
    char *items = api_arena_alloc(arena, yyjson_arr_size(v), f->item_size);
    yyjson_arr_foreach(v, i, max, val)
    {
        if (!yyjson_is_obj(val)) {
            return ferry_fail(err, FERRY_INVALID, "%s[%zu]: must be an object", f->path, i);
        }
        if (api_codec_decode(f->table, val, items + i * f->item_size, arena, err) < 0) {
            char text[FERRY_ERROR_TEXT];

            snprintf(text, sizeof(text), "%s", err ? err->msg : "");
            return ferry_fail(err, FERRY_INVALID, "%s[%zu].%s", f->path, i, text);
        }
    }
    *(void **)at(out, f->offset) = items;
    *(size_t *)at(out, f->count_offset) = yyjson_arr_size(v);
    return 0;
}

static int get_struct(const struct api_field *f, yyjson_val *v, void *out, struct api_arena *arena,
                      struct ferry_error *err)
{
    if (!yyjson_is_obj(v)) {
        return wrong(f, "an object", err);
    }
    if (api_codec_decode(f->table, v, at(out, f->offset), arena, err) < 0) {
        char text[FERRY_ERROR_TEXT];

        snprintf(text, sizeof(text), "%s", err ? err->msg : "");
        return ferry_fail(err, FERRY_INVALID, "%s.%s", f->path, text);
    }
    return 0;
}

static int decode_field(const struct api_field *f, yyjson_val *v, void *out,
                        struct api_arena *arena, struct ferry_error *err)
{
    switch (f->type) {
    case API_FIELD_STR:
        return get_string(f, v, out, err);
    case API_FIELD_BOOL:
        return get_bool(f, v, out, err);
    case API_FIELD_INT:
        return get_int(f, v, out, err);
    case API_FIELD_TIME:
        return get_time(f, v, out, err);
    case API_FIELD_QUANTITY:
        return get_quantity(f, v, out, err);
    case API_FIELD_MAP:
        return get_map(f, v, out, arena, err);
    case API_FIELD_STRINGS:
        return get_strings(f, v, out, arena, err);
    case API_FIELD_PORTS:
        return get_ports(f, v, out, arena, err);
    case API_FIELD_LIST:
        return get_list(f, v, out, arena, err);
    case API_FIELD_STRUCT:
        return get_struct(f, v, out, arena, err);
    case API_FIELD_PRESENT:
        *(bool *)at(out, f->offset) = true;
        return 0;
    case API_FIELD_RAW:
        if (!yyjson_is_ctn(v)) {
            return wrong(f, "an object or a list", err);
        }
        *(const yyjson_val **)at(out, f->offset) = v;
        return 0;
    }
    return ferry_fail(err, FERRY_FATAL, "%s: unknown field type", f->path);
}

/* Rows of one parent stand together; the last parent is remembered, so a table walks each path
 * once. */
struct parent {
    const char *path;
    size_t len;
    yyjson_val *val; /* NULL = absent */
};

static int find_parent(struct parent *last, yyjson_val *root, const char *path, size_t len,
                       struct ferry_error *err)
{
    yyjson_val *v = root;

    if (last->path && last->len == len && memcmp(last->path, path, len) == 0) {
        return 0;
    }
    for (size_t from = 0; v && from < len;) {
        size_t n = strcspn(path + from, ".");

        v = yyjson_obj_getn(v, path + from, n);
        if (v && yyjson_is_null(v)) {
            v = NULL;
        }
        if (v && !yyjson_is_obj(v)) {
            return ferry_fail(err, FERRY_INVALID, "%.*s: must be an object", (int)(from + n), path);
        }
        from += n + 1;
    }
    *last = (struct parent){.path = path, .len = len, .val = v};
    return 0;
}

int api_codec_decode(const struct api_field *table, const yyjson_val *v, void *out,
                     struct api_arena *arena, struct ferry_error *err)
{
    struct parent parent = {0};

    for (const struct api_field *f = table; f->path; f++) {
        const char *dot = strrchr(f->path, '.');
        const char *name = dot ? dot + 1 : f->path;

        if (find_parent(&parent, (yyjson_val *)v, f->path, dot ? (size_t)(dot - f->path) : 0, err) <
            0) {
            return -(int)FERRY_INVALID;
        }
        yyjson_val *val = yyjson_obj_get(parent.val, name);
        if (!val || yyjson_is_null(val)) {
            if (f->type == API_FIELD_INT) {
                *(int64_t *)at(out, f->offset) = f->arg;
            }
            continue;
        }
        int rc = decode_field(f, val, out, arena, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
