#include "apiserver/kinds/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/base64.h"
#include "api/json.h"
#include "apiserver/kinds/schema_pattern.h"
#include "base/str.h"
#include "json/doc.h"

enum { PATH_MAX_LEN = 400, UNKNOWN_MAX = 8 << 10 };

static yyjson_val *at(const yyjson_val *schema, const char *key)
{
    return yyjson_obj_get((yyjson_val *)schema, key);
}

static bool is_set(const yyjson_val *schema, const char *key)
{
    return yyjson_get_bool(at(schema, key));
}

/* The schema of a field: its own, or that of all others. */
static yyjson_val *schema_of(const yyjson_val *schema, const char *key)
{
    yyjson_val *own = yyjson_obj_get(at(schema, "properties"), key);
    yyjson_val *others = at(schema, "additionalProperties");

    return own ? own : yyjson_is_obj(others) ? others : NULL;
}

static bool keeps_unknown(const yyjson_val *schema)
{
    return is_set(schema, "x-kubernetes-preserve-unknown-fields") ||
           yyjson_is_true(at(schema, "additionalProperties"));
}

/* What every object has is not the schema's business. */
static bool is_envelope(const char *key)
{
    return ferry_streq(key, "metadata") || ferry_streq(key, "apiVersion") ||
           ferry_streq(key, "kind");
}

/* ---- unknown fields ----------------------------------------------------------------------------
 */

static void walk_unknown(const yyjson_val *schema, yyjson_mut_val *v, const char *path, bool top,
                         struct ferry_buf *ret)
{
    size_t i, max;
    yyjson_mut_val *key, *child;

    if (yyjson_mut_is_arr(v)) {
        yyjson_mut_arr_foreach(v, i, max, child)
        {
            char deeper[PATH_MAX_LEN];

            snprintf(deeper, sizeof(deeper), "%s[%zu]", path, i);
            if (at(schema, "items")) {
                walk_unknown(at(schema, "items"), child, deeper, false, ret);
            }
        }
    }
    if (!yyjson_mut_is_obj(v) || ret->len > UNKNOWN_MAX) {
        return; /* that many nobody reads */
    }
    yyjson_mut_obj_foreach(v, i, max, key, child)
    {
        const char *name = yyjson_mut_get_str(key);
        yyjson_val *below = schema_of(schema, name);
        char deeper[PATH_MAX_LEN];

        snprintf(deeper, sizeof(deeper), "%s%s%s", path, *path ? "." : "", name);
        if (top && is_envelope(name)) {
            continue;
        }
        if (below) {
            walk_unknown(below, child, deeper, false, ret);
        } else if (!keeps_unknown(schema) && ret->len <= UNKNOWN_MAX) {
            ferry_buf_printf(ret, "%sunknown field \"%s\"", ret->len ? ", " : "", deeper);
        }
    }
}

void schema_unknown(const yyjson_val *schema, yyjson_mut_val *object, struct ferry_buf *ret)
{
    if (schema) {
        walk_unknown(schema, object, "", true, ret);
    }
}

/* ---- pruning and defaults ----------------------------------------------------------------------
 */

static bool stays(const yyjson_val *schema, const char *name, const yyjson_mut_val *child)
{
    yyjson_val *below = schema_of(schema, name);

    if (!below) {
        return keeps_unknown(schema);
    }
    return !yyjson_mut_is_null((yyjson_mut_val *)child) || is_set(below, "nullable");
}

static void complete(const yyjson_val *schema, yyjson_mut_doc *doc, yyjson_mut_val *v, bool top);

static void complete_object(const yyjson_val *schema, yyjson_mut_doc *doc, yyjson_mut_val *v,
                            bool top)
{
    yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(v);
    yyjson_mut_val *key;
    yyjson_val *name, *below;
    size_t i, max;

    while ((key = yyjson_mut_obj_iter_next(&it))) {
        const char *field = yyjson_mut_get_str(key);

        if (!(top && is_envelope(field)) &&
            !stays(schema, field, yyjson_mut_obj_iter_get_val(key))) {
            yyjson_mut_obj_iter_remove(&it);
        }
    }
    yyjson_obj_foreach(at(schema, "properties"), i, max, name, below)
    {
        yyjson_val *value = at(below, "default");

        if (value && !yyjson_mut_obj_get(v, yyjson_get_str(name))) {
            yyjson_mut_obj_put(v, yyjson_mut_strcpy(doc, yyjson_get_str(name)),
                               yyjson_val_mut_copy(doc, value));
        }
    }
    yyjson_mut_val *child;
    yyjson_mut_obj_foreach(v, i, max, key, child)
    {
        below = schema_of(schema, yyjson_mut_get_str(key));
        if (below && !(top && is_envelope(yyjson_mut_get_str(key)))) {
            complete(below, doc, child, false);
        }
    }
}

static void complete(const yyjson_val *schema, yyjson_mut_doc *doc, yyjson_mut_val *v, bool top)
{
    yyjson_mut_val *child;
    size_t i, max;

    if (yyjson_mut_is_obj(v)) {
        complete_object(schema, doc, v, top);
    }
    if (at(schema, "items")) {
        yyjson_mut_arr_foreach(v, i, max, child)
        {
            complete(at(schema, "items"), doc, child, false);
        }
    }
}

void schema_complete(const yyjson_val *schema, yyjson_mut_doc *doc)
{
    if (schema) {
        complete(schema, doc, yyjson_mut_doc_get_root(doc), true);
    }
}

/* ---- validation --------------------------------------------------------------------------------
 */

struct check {
    const struct api_resource *resource;
    const char *name;
    struct status *st;
};

static int wrong(const struct check *c, const char *path, enum status_value value, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
static int wrong(const struct check *c, const char *path, enum status_value value, const char *fmt,
                 ...)
{
    char text[FERRY_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return status_invalid(c->st, c->resource, c->name, path, value, "%s", text);
}

/* "integer" for a whole number, also one written as 2.0. */
static const char *type_of(yyjson_mut_val *v)
{
    if (yyjson_mut_is_real(v)) {
        double d = yyjson_mut_get_real(v);

        return floor(d) == d ? "integer" : "number";
    }
    return yyjson_mut_is_int(v)    ? "integer"
           : yyjson_mut_is_str(v)  ? "string"
           : yyjson_mut_is_bool(v) ? "boolean"
           : yyjson_mut_is_arr(v)  ? "array"
           : yyjson_mut_is_obj(v)  ? "object"
                                   : "null";
}

static int check_type(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                      const char *path)
{
    const char *wanted = yyjson_get_str(at(schema, "type")), *got = type_of(v);

    if (yyjson_mut_is_null(v) && is_set(schema, "nullable")) {
        return 0;
    }
    if (is_set(schema, "x-kubernetes-int-or-string")) {
        /* of core kinds cpu: 0.5 is an amount, as Kubernetes' own decoder has it */
        bool amount = ferry_streq(yyjson_get_str(at(schema, "format")), "quantity");

        if (ferry_streq(got, "integer") || ferry_streq(got, "string") ||
            (amount && ferry_streq(got, "number"))) {
            return 0;
        }
        wanted = "integer,string";
    }
    if (!wanted || ferry_streq(wanted, got) ||
        (ferry_streq(wanted, "number") && ferry_streq(got, "integer"))) {
        return 0;
    }
    return wrong(c, path, STATUS_VALUE_INVALID, "\"%s\": %s in body must be of type %s: \"%s\"",
                 got, path, wanted, got);
}

static int check_enum(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                      const char *path)
{
    yyjson_val *list = at(schema, "enum"), *item;
    ferry_cleanup_buf struct ferry_buf known = {0};
    ferry_cleanup_free char *got = json_doc_mut_text(v, 0, NULL);
    size_t i, max;

    if (!list) {
        return 0;
    }
    yyjson_arr_foreach(list, i, max, item)
    {
        ferry_cleanup_free char *text = json_doc_val_text(item, 0, NULL);

        if (ferry_streq(text, got)) {
            return 0;
        }
        ferry_buf_printf(&known, "%s%s", i ? ", " : "", text);
    }
    return wrong(c, path, STATUS_VALUE_UNSUPPORTED, "%.100s: supported values: %.300s", got,
                 known.data);
}

static int check_number(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                        const char *path)
{
    yyjson_val *low = at(schema, "minimum"), *high = at(schema, "maximum");
    const char *format = yyjson_get_str(at(schema, "format"));
    double d = yyjson_mut_get_num(v);

    if (!yyjson_mut_is_num(v)) {
        return 0;
    }
    if (low && d < yyjson_get_num(low)) {
        return wrong(c, path, STATUS_VALUE_INVALID,
                     "%.15g: %s in body should be greater than or equal to %.15g", d, path,
                     yyjson_get_num(low));
    }
    if ((high && d > yyjson_get_num(high)) ||
        (ferry_streq(format, "int32") && (d > INT32_MAX || d < INT32_MIN))) {
        return wrong(c, path, STATUS_VALUE_INVALID,
                     "%.15g: %s in body should be less than or equal to %.15g", d, path,
                     high ? yyjson_get_num(high) : INT32_MAX);
    }
    return 0;
}

static int check_string(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                        const char *path)
{
    const char *text = yyjson_mut_get_str(v);
    const char *pattern = yyjson_get_str(at(schema, "pattern"));
    const char *format = yyjson_get_str(at(schema, "format"));
    yyjson_val *most = at(schema, "maxLength"), *least = at(schema, "minLength");
    int64_t ms;

    if (!text) {
        return 0;
    }
    size_t n = yyjson_mut_get_len(v);
    if (most && n > yyjson_get_uint(most)) {
        return wrong(c, path, STATUS_VALUE_TOO_LONG, "may not be more than %llu bytes",
                     (unsigned long long)yyjson_get_uint(most));
    }
    if (least && n < yyjson_get_uint(least)) {
        return wrong(c, path, STATUS_VALUE_INVALID,
                     "\"%.100s\": %s in body should be at least %llu chars "
                     "long",
                     text, path, (unsigned long long)yyjson_get_uint(least));
    }
    if (pattern && !schema_pattern_matches(pattern, text)) {
        return wrong(c, path, STATUS_VALUE_INVALID, "\"%.100s\": %s in body should match '%.150s'",
                     text, path, pattern);
    }
    if (ferry_streq(format, "byte") && !api_base64_valid(text, strlen(text))) {
        return wrong(c, path, STATUS_VALUE_INVALID, "%s in body must be of type byte: not base64",
                     path);
    }
    if (ferry_streq(format, "date-time") && api_time_parse(text, &ms, NULL) < 0) {
        return wrong(c, path, STATUS_VALUE_INVALID,
                     "\"%.100s\": %s in body must be of type date-time: "
                     "\"%.100s\"",
                     text, path, text);
    }
    return 0;
}

/* What makes an item of a list unique: all of it, or its keys. Owned by the caller. */
static char *identity_of(const yyjson_val *schema, yyjson_mut_val *item)
{
    yyjson_val *keys = at(schema, "x-kubernetes-list-map-keys"), *key;
    struct ferry_buf b = {0};
    size_t i, max;

    if (!keys) {
        return json_doc_mut_text(item, 0, NULL);
    }
    ferry_buf_puts(&b, "{");
    yyjson_arr_foreach(keys, i, max, key)
    {
        yyjson_mut_val *value = yyjson_mut_obj_get(item, yyjson_get_str(key));
        ferry_cleanup_free char *text = value ? json_doc_mut_text(value, 0, NULL) : NULL;

        ferry_buf_printf(&b, "%s\"%s\":%s", i ? "," : "", yyjson_get_str(key),
                         text ? text : "null");
    }
    ferry_buf_puts(&b, "}");
    return ferry_buf_take(&b);
}

struct identity {
    char *text;
    size_t index;
};

static int compare_identities(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    int d = strcmp(x->text, y->text);

    return d ? d : (x->index > y->index) - (x->index < y->index);
}

/* The first item that is there before: sorted, because peers choose how long the list is. */
static const struct identity *first_repeated(struct identity *all, size_t n)
{
    const struct identity *found = NULL;

    qsort(all, n, sizeof(*all), compare_identities);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(all[i].text, all[i - 1].text) == 0 && (!found || all[i].index < found->index)) {
            found = &all[i];
        }
    }
    return found;
}

static int check_unique(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                        const char *path)
{
    const char *type = yyjson_get_str(at(schema, "x-kubernetes-list-type"));
    size_t i, max, n = yyjson_mut_arr_size(v);
    yyjson_mut_val *item;
    int rc = 0;

    if (n < 2 || (!ferry_streq(type, "map") && !ferry_streq(type, "set"))) {
        return 0;
    }
    ferry_cleanup_free struct identity *all = ferry_xcalloc(n, sizeof(*all));
    yyjson_mut_arr_foreach(v, i, max, item)
    {
        char *text = identity_of(schema, item);

        all[i] = (struct identity){.text = text ? text : ferry_strdup(""), .index = i};
    }
    const struct identity *twice = first_repeated(all, n);
    if (twice) {
        char where[PATH_MAX_LEN];

        snprintf(where, sizeof(where), "%s[%zu]", path, twice->index);
        rc = wrong(c, where, STATUS_VALUE_DUPLICATE, "%.200s", twice->text);
    }
    for (i = 0; i < n; i++) {
        free(all[i].text);
    }
    return rc;
}

static int validate(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                    yyjson_mut_val *old, const char *path, bool top);

static int check_array(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                       yyjson_mut_val *old, const char *path)
{
    yyjson_mut_arr_iter before = yyjson_mut_arr_iter_with(old); /* ends at once where it is none */
    yyjson_mut_val *item;
    size_t i, max;

    if (at(schema, "maxItems") &&
        yyjson_mut_arr_size(v) > yyjson_get_uint(at(schema, "maxItems"))) {
        return wrong(c, path, STATUS_VALUE_TOO_MANY, "%zu: must have at most %llu items",
                     yyjson_mut_arr_size(v),
                     (unsigned long long)yyjson_get_uint(at(schema, "maxItems")));
    }
    yyjson_mut_arr_foreach(v, i, max, item)
    {
        char deeper[PATH_MAX_LEN];

        yyjson_mut_val *was = yyjson_mut_arr_iter_next(&before);

        snprintf(deeper, sizeof(deeper), "%s[%zu]", path, i);
        if (at(schema, "items") && validate(c, at(schema, "items"), item, was, deeper, false) < 0) {
            return -1;
        }
    }
    return check_unique(c, schema, v, path);
}

/* The field as it was; not of a map, which may have any number. */
static yyjson_mut_val *field_before(const yyjson_val *schema, yyjson_mut_val *old,
                                    const char *field)
{
    return old && yyjson_obj_get(at(schema, "properties"), field) ? yyjson_mut_obj_get(old, field)
                                                                  : NULL;
}

static int check_object(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                        yyjson_mut_val *old, const char *path, bool top)
{
    yyjson_val *name;
    yyjson_mut_val *key, *child;
    char deeper[PATH_MAX_LEN];
    size_t i, max;

    yyjson_arr_foreach(at(schema, "required"), i, max, name)
    {
        if (!yyjson_mut_obj_get(v, yyjson_get_str(name))) {
            snprintf(deeper, sizeof(deeper), "%s%s%s", path, *path ? "." : "",
                     yyjson_get_str(name));
            return wrong(c, deeper, STATUS_VALUE_REQUIRED, "%s", "");
        }
    }
    if (at(schema, "maxProperties") &&
        yyjson_mut_obj_size(v) > yyjson_get_uint(at(schema, "maxProperties"))) {
        return wrong(c, path, STATUS_VALUE_TOO_MANY, "%zu: must have at most %llu items",
                     yyjson_mut_obj_size(v),
                     (unsigned long long)yyjson_get_uint(at(schema, "maxProperties")));
    }
    yyjson_mut_obj_foreach(v, i, max, key, child)
    {
        const char *field = yyjson_mut_get_str(key);
        yyjson_val *below = schema_of(schema, field);

        snprintf(deeper, sizeof(deeper), "%s%s%s", path, *path ? "." : "", field);
        if (below && !(top && is_envelope(field)) &&
            validate(c, below, child, field_before(schema, old, field), deeper, false) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A rule that nothing keeps is how a definition says that there are none of its kind. Others are
 * not run (see above). */
static int check_refused(const struct check *c, const yyjson_val *schema, const char *path)
{
    yyjson_val *rule;
    size_t i, max;

    yyjson_arr_foreach(at(schema, "x-kubernetes-validations"), i, max, rule)
    {
        const char *why = yyjson_get_str(yyjson_obj_get(rule, "message"));

        if (ferry_streq(yyjson_get_str(yyjson_obj_get(rule, "rule")), "false")) {
            return wrong(c, path, STATUS_VALUE_INVALID, "\"object\": %.400s", why ? why : "");
        }
    }
    return 0;
}

/* What was there before as it is now may stay, whatever the schema has become. */
static int validate(const struct check *c, const yyjson_val *schema, yyjson_mut_val *v,
                    yyjson_mut_val *old, const char *path, bool top)
{
    if (old && yyjson_mut_equals(old, v)) {
        return 0;
    }
    if (check_refused(c, schema, path) < 0 || check_type(c, schema, v, path) < 0 ||
        check_enum(c, schema, v, path) < 0 || check_number(c, schema, v, path) < 0 ||
        check_string(c, schema, v, path) < 0) {
        return -1;
    }
    if (yyjson_mut_is_arr(v)) {
        return check_array(c, schema, v, old, path);
    }
    return yyjson_mut_is_obj(v) ? check_object(c, schema, v, old, path, top) : 0;
}

int schema_validate(const yyjson_val *schema, const struct api_resource *r, const char *name,
                    yyjson_mut_val *object, const yyjson_val *old, struct status *st)
{
    const struct check c = {.resource = r, .name = name, .st = st};

    if (!schema || validate(&c, schema, object, NULL, "", true) == 0) {
        return 0;
    }
    /* looked at only now: nearly every object is as its schema says */
    yyjson_mut_doc *copy = old ? yyjson_mut_doc_new(NULL) : NULL;
    if (!copy) {
        return -1;
    }
    *st = (struct status){0};
    int rc = validate(&c, schema, object, yyjson_val_mut_copy(copy, (yyjson_val *)old), "", true);
    yyjson_mut_doc_free(copy);
    return rc;
}
