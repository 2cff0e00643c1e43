/* Strict JSON on top of yyjson, which by itself takes duplicate keys, any depth and NUL characters:
 * a checking pass over the parsed values refuses them, and what has too many parts, naming where.
 */
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
    ferry_fail(err, FERRY_INVALID, "%s%s%.100s%s", what, arg ? " '" : "", arg ? arg : "",
               arg ? "'" : "");
    if (where.len) {
        ferry_wrap_about(err, "%.200s", where.data);
    }
    return -FERRY_INVALID;
}

/* ---- checking --------------------------------------------------------------------------------
 */

struct check {
    size_t bytes;      /* of the strings seen */
    const char *inner; /* member of the root that is left out, or NULL */
    struct ferry_error *err;
};

static int compare_keys(const void *a, const void *b)
{
    yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
    size_t n = unsafe_yyjson_get_len(x), m = unsafe_yyjson_get_len(y);

    return n != m ? (n < m ? -1 : 1)
                  : memcmp(unsafe_yyjson_get_str(x), unsafe_yyjson_get_str(y), n);
}

static const char *duplicate_key(yyjson_val **keys, size_t n)
{
    if (n <= FEW_KEYS) {
        for (size_t i = 1; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                if (compare_keys(&keys[i], &keys[j]) == 0) {
                    return unsafe_yyjson_get_str(keys[i]);
                }
            }
        }
        return NULL;
    }
    qsort(keys, n, sizeof(yyjson_val *), compare_keys);
    for (size_t i = 1; i < n; i++) {
        if (compare_keys(&keys[i], &keys[i - 1]) == 0) {
            return unsafe_yyjson_get_str(keys[i]);
        }
    }
    return NULL;
}

/* Counts the string; false when it has a NUL inside. */
static bool string_is_plain(struct check *c, yyjson_val *v)
{
    size_t len = unsafe_yyjson_get_len(v);

    c->bytes += len + 1;
    return !memchr(unsafe_yyjson_get_str(v), '\0', len);
}

static int check_keys(struct check *c, yyjson_val *v, const struct path *p)
{
    yyjson_val *few[FEW_KEYS];
    size_t n = yyjson_obj_size(v), i, max;
    ferry_cleanup_free yyjson_val **many =
        n > FEW_KEYS ? ferry_xcalloc(n, sizeof(yyjson_val *)) : NULL;
    yyjson_val **keys = many ? many : few;
    yyjson_val *key, *val;

    if (n > API_JSON_MAX_KEYS) {
        return refuse(p, c->err, "too many keys", NULL);
    }
    yyjson_obj_foreach(v, i, max, key, val)
    {
        keys[i] = key;
        if (!string_is_plain(c, key)) {
            return refuse(p, c->err, "a key contains a NUL character", NULL);
        }
    }
    const char *twice = duplicate_key(keys, n);
    return twice ? refuse(p, c->err, "duplicate key", twice) : 0;
}

static int check(struct check *c, yyjson_val *v, size_t depth, const struct path *p)
{
    size_t i, max;
    yyjson_val *key, *val;
    int rc = 0;

    if (unsafe_yyjson_is_str(v)) {
        return string_is_plain(c, v) ? 0 : refuse(p, c->err, "contains a NUL character", NULL);
    }
    if (!unsafe_yyjson_is_ctn(v)) {
        return 0;
    }
    if (depth == 0) {
        return refuse(p, c->err, "nested too deeply", NULL);
    }
    if (unsafe_yyjson_is_arr(v)) {
        if (yyjson_arr_size(v) > API_JSON_MAX_ITEMS) {
            return refuse(p, c->err, "too many items", NULL);
        }
        yyjson_arr_foreach(v, i, max, val)
        {
            rc = check(c, val, depth - 1, &(struct path){.up = p, .index = i});
            if (rc < 0) {
                return rc;
            }
        }
        return 0;
    }
    rc = check_keys(c, v, p);
    if (rc < 0) {
        return rc;
    }
    yyjson_obj_foreach(v, i, max, key, val)
    {
        const char *name = unsafe_yyjson_get_str(key);

        if (c->inner && !p->up && strcmp(name, c->inner) == 0) {
            continue;
        }
        rc = check(c, val, depth - 1, &(struct path){.up = p, .key = name});
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int api_json_measure(const yyjson_val *v, size_t max_depth, size_t *ret_bytes,
                     struct ferry_error *err)
{
    struct check c = {.err = err};
    int rc = check(&c, (yyjson_val *)v, max_depth, &(struct path){0});

    *ret_bytes = c.bytes;
    return rc;
}

int api_json_check(const yyjson_val *v, size_t max_depth, struct ferry_error *err)
{
    size_t bytes;

    return api_json_measure(v, max_depth, &bytes, err);
}

/* ---- parsing ---------------------------------------------------------------------------------
 */

static int read_text(char *text, size_t len, yyjson_read_flag flags, yyjson_doc **ret,
                     struct ferry_error *err)
{
    yyjson_read_err why = {0};

    if (len > API_JSON_MAX_BYTES) {
        return ferry_fail(err, FERRY_INVALID, "more than %d bytes of JSON", API_JSON_MAX_BYTES);
    }
    *ret = yyjson_read_opts(text, len, flags, NULL, &why);
    if (!*ret) {
        return ferry_fail(err, FERRY_INVALID, "invalid JSON at byte %zu: %s", why.pos,
                          why.msg ? why.msg : "not JSON");
    }
    return 0;
}

int api_json_read(const char *json, size_t len, yyjson_doc **ret, struct ferry_error *err)
{
    return read_text((char *)json, len, YYJSON_READ_NOFLAG, ret, err);
}

int api_json_parse_around(char *text, size_t len, const char *inner, yyjson_doc **ret,
                          struct ferry_error *err)
{
    struct check c = {.inner = inner, .err = err};
    yyjson_doc *doc = NULL;

    memset(text + len, 0, YYJSON_PADDING_SIZE);
    int rc = read_text(text, len, YYJSON_READ_INSITU, &doc, err);
    if (rc < 0) {
        return rc;
    }
    rc = check(&c, yyjson_doc_get_root(doc), API_JSON_DEPTH + API_JSON_ENVELOPE_DEPTH,
               &(struct path){0});
    if (rc < 0) {
        yyjson_doc_free(doc);
        return rc;
    }
    *ret = doc;
    return 0;
}

/* Of what read_text() gave. */
static int keep_checked(yyjson_doc *doc_take, size_t max_depth, yyjson_doc **ret,
                        struct ferry_error *err)
{
    int rc = api_json_check(yyjson_doc_get_root(doc_take), max_depth, err);

    if (rc < 0) {
        yyjson_doc_free(doc_take);
        return rc;
    }
    *ret = doc_take;
    return 0;
}

int api_json_parse_depth(const char *json, size_t len, size_t max_depth, yyjson_doc **ret,
                         struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = api_json_read(json, len, &doc, err);

    return rc < 0 ? rc : keep_checked(doc, max_depth, ret, err);
}

int api_json_parse_first(const char *json, size_t len, yyjson_doc **ret, size_t *ret_used,
                         struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = read_text((char *)json, len, YYJSON_READ_STOP_WHEN_DONE, &doc, err);

    if (rc < 0) {
        return rc;
    }
    *ret_used = yyjson_doc_get_read_size(doc);
    return keep_checked(doc, API_JSON_DEPTH + API_JSON_ENVELOPE_DEPTH, ret, err);
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
