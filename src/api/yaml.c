/* YAML to JSON over libyaml's events. Plain scalars get their type as kubectl's reader gives it
 * (YAML 1.1: yes, no, on, off are booleans). What cannot be written as JSON, and what makes a small
 * text into a large value (anchors, aliases), is refused. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include <yyjson.h>

#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "json/doc.h"

struct reader {
    yaml_parser_t parser;
    yyjson_mut_doc *doc;
    int (*each)(void *ctx, const char *json, size_t json_len, struct ferry_error *err);
    void *ctx;
    struct ferry_error *err;
};

static void event_done(yaml_event_t *e)
{
    yaml_event_delete(e);
}
#define cleanup_event ferry_cleanup(event_done)

static int fail_at(struct reader *r, const yaml_mark_t *mark, const char *what)
{
    return ferry_fail(r->err, FERRY_INVALID, "line %zu: %s", mark->line + 1, what);
}

static int next(struct reader *r, yaml_event_t *e)
{
    if (!yaml_parser_parse(&r->parser, e)) {
        const yaml_mark_t *mark =
            r->parser.problem_mark.line ? &r->parser.problem_mark : &r->parser.mark;

        memset(e, 0, sizeof(*e));
        return fail_at(r, mark, r->parser.problem ? r->parser.problem : "not YAML");
    }
    return 0;
}

static bool one_of(const char *s, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(s, *list) == 0) {
            return true;
        }
    }
    return false;
}

static yyjson_mut_val *number_of(struct reader *r, const char *s)
{
    bool negative = *s == '-';
    const char *digits = s + (*s == '-' || *s == '+');
    int base = 10;
    char *end = NULL;

    if (!isdigit((unsigned char)*digits) && *digits != '.') {
        return NULL;
    }
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
        base = 16;
        digits += 2;
    } else if (digits[0] == '0' && (digits[1] == 'o' || digits[1] == 'b')) {
        base = digits[1] == 'o' ? 8 : 2;
        digits += 2;
    } else if (digits[0] == '0' && isdigit((unsigned char)digits[1])) {
        base = 8;
    }
    errno = 0;
    unsigned long long u = isxdigit((unsigned char)*digits) ? strtoull(digits, &end, base) : 0;
    if (end && !*end && errno == 0) {
        if (!negative) {
            return yyjson_mut_uint(r->doc, u);
        }
        if (u <= INT64_MAX) {
            return yyjson_mut_sint(r->doc, -(int64_t)u);
        }
    }
    if (base != 10 || strspn(digits, "0123456789.eE+-") != strlen(digits)) {
        return NULL;
    }
    double d = strtod(s, &end);
    return *end ? NULL : yyjson_mut_real(r->doc, d);
}

static yyjson_mut_val *plain(struct reader *r, const char *s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                        "y",    "Y",    "on",   "On",  "ON",  NULL};
    static const char *const falses[] = {"false", "False", "FALSE", "no",  "No",  "NO",
                                         "n",     "N",     "off",   "Off", "OFF", NULL};

    if (one_of(s, nulls)) {
        return yyjson_mut_null(r->doc);
    }
    if (one_of(s, trues) || one_of(s, falses)) {
        return yyjson_mut_bool(r->doc, one_of(s, trues));
    }
    yyjson_mut_val *number = number_of(r, s);
    return number ? number : yyjson_mut_strcpy(r->doc, s);
}

static int scalar(struct reader *r, const yaml_event_t *e, yyjson_mut_val **ret)
{
    const char *text = (const char *)e->data.scalar.value;
    const char *tag = (const char *)e->data.scalar.tag;

    if (e->data.scalar.anchor) {
        return fail_at(r, &e->start_mark, "anchors are not supported");
    }
    if (strlen(text) != e->data.scalar.length) {
        return fail_at(r, &e->start_mark, "a value contains a NUL character");
    }
    if (tag && strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, "!") != 0) {
        return fail_at(r, &e->start_mark, "tags are not supported");
    }
    bool typed = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !tag;
    *ret = typed ? plain(r, text) : yyjson_mut_strcpy(r->doc, text);
    return 0;
}

static int value(struct reader *r, const yaml_event_t *e, size_t depth, yyjson_mut_val **ret);

static int sequence(struct reader *r, size_t depth, yyjson_mut_val *list)
{
    for (;;) {
        cleanup_event yaml_event_t e = {0};
        yyjson_mut_val *item = NULL;
        int rc = next(r, &e);

        if (rc < 0 || e.type == YAML_SEQUENCE_END_EVENT) {
            return rc;
        }
        rc = value(r, &e, depth - 1, &item);
        if (rc < 0) {
            return rc;
        }
        yyjson_mut_arr_append(list, item);
    }
}

static int mapping(struct reader *r, size_t depth, yyjson_mut_val *object)
{
    for (;;) {
        cleanup_event yaml_event_t key = {0};
        cleanup_event yaml_event_t e = {0};
        yyjson_mut_val *item = NULL;
        int rc = next(r, &key);

        if (rc < 0 || key.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        if (key.type != YAML_SCALAR_EVENT) {
            return fail_at(r, &key.start_mark, "a key must be a plain value");
        }
        rc = scalar(r, &key, &item); /* for its checks */
        if (rc < 0) {
            return rc;
        }
        const char *name = (const char *)key.data.scalar.value;
        if (key.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(name, "<<") == 0) {
            return fail_at(r, &key.start_mark, "merge keys are not supported");
        }
        rc = next(r, &e);
        if (rc == 0) {
            rc = value(r, &e, depth - 1, &item);
        }
        if (rc < 0) {
            return rc;
        }
        yyjson_mut_obj_add(object, yyjson_mut_strcpy(r->doc, name), item);
    }
}

static int value(struct reader *r, const yaml_event_t *e, size_t depth, yyjson_mut_val **ret)
{
    if (depth == 0) {
        return fail_at(r, &e->start_mark, "nested too deeply");
    }
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return scalar(r, e, ret);
    case YAML_SEQUENCE_START_EVENT:
        if (e->data.sequence_start.anchor || e->data.sequence_start.tag) {
            return fail_at(r, &e->start_mark, "anchors and tags are not supported");
        }
        *ret = yyjson_mut_arr(r->doc);
        return sequence(r, depth, *ret);
    case YAML_MAPPING_START_EVENT:
        if (e->data.mapping_start.anchor || e->data.mapping_start.tag) {
            return fail_at(r, &e->start_mark, "anchors and tags are not supported");
        }
        *ret = yyjson_mut_obj(r->doc);
        return mapping(r, depth, *ret);
    case YAML_ALIAS_EVENT:
        return fail_at(r, &e->start_mark, "aliases are not supported");
    default:
        return fail_at(r, &e->start_mark, "unexpected YAML");
    }
}

/* Duplicate keys are found here, by the same check that JSON gets. */
static int emit(struct reader *r, yyjson_mut_val *root, size_t line)
{
    yyjson_write_err why = {0};
    size_t len = 0;
    ferry_cleanup_free char *json =
        yyjson_mut_val_write_opts(root, YYJSON_WRITE_NOFLAG, NULL, &len, &why);
    api_cleanup_doc yyjson_doc *doc = NULL;

    if (!json) {
        return ferry_fail(r->err, FERRY_INVALID, "document at line %zu: %s", line + 1,
                          why.msg ? why.msg : "cannot be written as JSON");
    }
    if (yyjson_mut_is_null(root)) {
        return 0;
    }
    if (api_json_parse(json, len, &doc, r->err) < 0) {
        return ferry_wrap(r->err, "document at line %zu", line + 1);
    }
    return r->each(r->ctx, json, len, r->err);
}

static int document(struct reader *r)
{
    cleanup_event yaml_event_t e = {0};
    cleanup_event yaml_event_t end = {0};
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = NULL;

    r->doc = doc;
    int rc = next(r, &e);
    if (rc == 0) {
        rc = value(r, &e, API_JSON_DEPTH + API_JSON_ENVELOPE_DEPTH, &root);
    }
    if (rc == 0) {
        rc = next(r, &end); /* the document's end */
    }
    return rc < 0 ? rc : emit(r, root, e.start_mark.line);
}

static int documents(struct reader *r)
{
    for (;;) {
        cleanup_event yaml_event_t e = {0};
        int rc = next(r, &e);

        if (rc < 0 || e.type == YAML_STREAM_END_EVENT) {
            return rc;
        }
        if (e.type == YAML_DOCUMENT_START_EVENT) {
            rc = document(r);
            if (rc < 0) {
                return rc;
            }
        }
    }
}

static bool looks_like_json(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && isspace((unsigned char)text[i])) {
        i++;
    }
    return i < len && text[i] == '{';
}

/* JSON documents one after the other; `*ret_used` is where they end: at the end of the text, or
 * where a YAML document begins ("---"). */
static int json_documents(struct reader *r, const char *text, size_t len, size_t *ret_used)
{
    size_t at = 0;

    while (looks_like_json(text + at, len - at)) {
        api_cleanup_doc yyjson_doc *doc = NULL;
        size_t used = 0;
        int rc = api_json_parse_first(text + at, len - at, &doc, &used, r->err);

        rc = rc < 0 ? rc : r->each(r->ctx, text + at, used, r->err);
        if (rc < 0) {
            return rc;
        }
        at += used;
        while (at < len && isspace((unsigned char)text[at])) {
            at++;
        }
    }
    *ret_used = at;
    if (at < len && strncmp(text + at, "---", len - at < 3 ? len - at : 3) != 0) {
        return ferry_fail(r->err, FERRY_INVALID, "unexpected text at byte %zu, behind a document",
                          at);
    }
    return 0;
}

int api_yaml_each(const char *yaml, size_t len,
                  int (*each)(void *ctx, const char *json, size_t json_len,
                              struct ferry_error *err),
                  void *ctx, struct ferry_error *err)
{
    struct reader r = {.each = each, .ctx = ctx, .err = err};
    size_t json = 0;

    if (looks_like_json(yaml, len)) {
        int rc = json_documents(&r, yaml, len, &json);

        if (rc < 0 || json == len) {
            return rc;
        }
    }
    if (!yaml_parser_initialize(&r.parser)) {
        return ferry_fail(err, FERRY_FATAL, "out of memory");
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)yaml + json, len - json);
    int rc = documents(&r);
    yaml_parser_delete(&r.parser);
    return rc;
}
