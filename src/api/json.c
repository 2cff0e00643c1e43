/* Strict JSON on top of yyjson, which by itself takes duplicate keys, any depth and NUL characters:
 * a checking pass over the parsed values refuses them, naming where. */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"

enum { FEW_KEYS = 16 };

struct path {
    const struct path *up;
    const char *key; /* of an object, or NULL */
    size_t index;    /* of an array */
};

static void path_text(const struct path *p, struct ferry_buf *out)
{
    if (!p->up) {
        return;
    }
    path_text(p->up, out);
    if (!p->key) {
        ferry_buf_printf(out, "[%zu]", p->index);
    } else if (strpbrk(p->key, "./")) {
        ferry_buf_printf(out, "[%.100s]", p->key);
    } else {
        ferry_buf_printf(out, "%s%.100s", out->len ? "." : "", p->key);
    }
}

static int refuse(const struct path *p, struct ferry_error *err, const char *what, const char *arg)
{
    ferry_cleanup_buf struct ferry_buf where = {0};

    path_text(p, &where);
    return ferry_fail(err, FERRY_INVALID, "%.200s%s%s%s%.100s%s", where.len ? where.data : "",
                      where.len ? ": " : "", what, arg ? " '" : "", arg ? arg : "", arg ? "'" : "");
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *duplicate_key(const char **keys, size_t n)
{
    if (n <= FEW_KEYS) {
        for (size_t i = 1; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                if (strcmp(keys[i], keys[j]) == 0) {
                    return keys[i];
                }
            }
        }
        return NULL;
    }
    qsort(keys, n, sizeof(*keys), compare_keys);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(keys[i], keys[i - 1]) == 0) {
            return keys[i];
        }
    }
    return NULL;
}

static int check_keys(yyjson_val *v, const struct path *p, struct ferry_error *err)
{
    const char *few[FEW_KEYS];
    size_t n = yyjson_obj_size(v), i, max;
    ferry_cleanup_free const char **many = n > FEW_KEYS ? ferry_xcalloc(n, sizeof(*many)) : NULL;
    const char **keys = many ? many : few;
    yyjson_val *key, *val;

    yyjson_obj_foreach(v, i, max, key, val)
    {
        keys[i] = yyjson_get_str(key);
        if (strlen(keys[i]) != yyjson_get_len(key)) {
            return refuse(p, err, "a key contains a NUL character", NULL);
        }
    }
    const char *twice = duplicate_key(keys, n);
    return twice ? refuse(p, err, "duplicate key", twice) : 0;
}

static int check(yyjson_val *v, size_t depth, const struct path *p, struct ferry_error *err)
{
    size_t i, max;
    yyjson_val *key, *val;
    int rc = 0;

    if (yyjson_is_str(v)) {
        return strlen(yyjson_get_str(v)) == yyjson_get_len(v)
                   ? 0
                   : refuse(p, err, "contains a NUL character", NULL);
    }
    if (!yyjson_is_ctn(v)) {
        return 0;
    }
    if (depth == 0) {
        return refuse(p, err, "nested too deeply", NULL);
    }
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, max, val)
        {
            rc = check(val, depth - 1, &(struct path){.up = p, .index = i}, err);
            if (rc < 0) {
                return rc;
            }
        }
        return 0;
    }
    rc = check_keys(v, p, err);
    if (rc < 0) {
        return rc;
    }
    yyjson_obj_foreach(v, i, max, key, val)
    {
        rc = check(val, depth - 1, &(struct path){.up = p, .key = yyjson_get_str(key)}, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int api_json_check(const yyjson_val *v, size_t max_depth, struct ferry_error *err)
{
    return check((yyjson_val *)v, max_depth, &(struct path){0}, err);
}

int api_json_parse_depth(const char *json, size_t len, size_t max_depth, yyjson_doc **ret,
                         struct ferry_error *err)
{
    yyjson_read_err why = {0};

    if (len > API_JSON_MAX_BYTES) {
        return ferry_fail(err, FERRY_INVALID, "more than %d bytes of JSON", API_JSON_MAX_BYTES);
    }
    yyjson_doc *doc = yyjson_read_opts((char *)json, len, YYJSON_READ_NOFLAG, NULL, &why);
    if (!doc) {
        return ferry_fail(err, FERRY_INVALID, "invalid JSON at byte %zu: %s", why.pos,
                          why.msg ? why.msg : "not JSON");
    }
    int rc = api_json_check(yyjson_doc_get_root(doc), max_depth, err);
    if (rc < 0) {
        yyjson_doc_free(doc);
        return rc;
    }
    *ret = doc;
    return 0;
}

int api_json_parse(const char *json, size_t len, yyjson_doc **ret, struct ferry_error *err)
{
    return api_json_parse_depth(json, len, API_JSON_DEPTH + API_JSON_ENVELOPE_DEPTH, ret, err);
}

const char *api_json_str(const yyjson_val *v, const char *pointer)
{
    return yyjson_get_str(yyjson_ptr_get((yyjson_val *)v, pointer));
}

bool api_json_bool(const yyjson_val *v, const char *pointer, bool absent)
{
    yyjson_val *at = yyjson_ptr_get((yyjson_val *)v, pointer);

    return yyjson_is_bool(at) ? yyjson_get_bool(at) : absent;
}

int64_t api_json_int(const yyjson_val *v, const char *pointer, int64_t absent)
{
    int64_t n;

    return api_json_get_int(yyjson_ptr_get((yyjson_val *)v, pointer), &n) ? n : absent;
}

bool api_json_get_int(const yyjson_val *v, int64_t *ret)
{
    yyjson_val *at = (yyjson_val *)v;

    if (yyjson_is_sint(at)) {
        *ret = yyjson_get_sint(at);
        return true;
    }
    if (yyjson_is_uint(at) && yyjson_get_uint(at) <= INT64_MAX) {
        *ret = (int64_t)yyjson_get_uint(at);
        return true;
    }
    /* 30.0 is a whole number, as Kubernetes' own decoder has it */
    if (yyjson_is_real(at)) {
        double d = yyjson_get_real(at);

        if (d >= -9e15 && d <= 9e15 && d == (double)(int64_t)d) {
            *ret = (int64_t)d;
            return true;
        }
    }
    return false;
}
