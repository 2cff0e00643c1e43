#include "apiserver/message/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/json.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

static const struct {
    int code;
    const char *reason;
} reasons[] = {
    {400, "BadRequest"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "NotFound"},
    {405, "MethodNotAllowed"},
    {406, "NotAcceptable"},
    {409, "Conflict"},
    {410, "Expired"},
    {413, "RequestEntityTooLarge"},
    {415, "UnsupportedMediaType"},
    {422, "Invalid"},
    {429, "TooManyRequests"},
    {500, "InternalError"},
    {502, "BadGateway"},
    {503, "ServiceUnavailable"},
    {504, "Timeout"},
    {507, "InsufficientStorage"},
};

const char *status_reason(int code)
{
    for (size_t i = 0; i < FERRY_COUNT(reasons); i++) {
        if (reasons[i].code == code) {
            return reasons[i].reason;
        }
    }
    return "";
}

__attribute__((format(printf, 3, 0))) static void set(struct status *st, int code, const char *fmt,
                                                      va_list ap)
{
    *st = (struct status){.code = code, .reason = status_reason(code)};
    vsnprintf(st->message, sizeof(st->message), fmt, ap);
}

static void about(struct status *st, const struct api_resource *r, const char *name)
{
    st->resource = r;
    snprintf(st->name, sizeof(st->name), "%s", name ? name : "");
}

int status_fail(struct status *st, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set(st, code, fmt, ap);
    va_end(ap);
    return -1;
}

void status_resource_name(const struct api_resource *r, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", r->plural, *r->group ? "." : "", r->group);
}

int status_not_found(struct status *st, const struct api_resource *r, const char *name)
{
    char what[256];

    status_resource_name(r, what, sizeof(what));
    status_fail(st, 404, "%s \"%s\" not found", what, name);
    about(st, r, name);
    return -1;
}

int status_exists(struct status *st, const struct api_resource *r, const char *name)
{
    char what[256];

    status_resource_name(r, what, sizeof(what));
    status_fail(st, 409, "%s \"%s\" already exists", what, name);
    st->reason = "AlreadyExists";
    about(st, r, name);
    return -1;
}

int status_conflict(struct status *st, const struct api_resource *r, const char *name,
                    const char *why)
{
    char what[256];

    status_resource_name(r, what, sizeof(what));
    status_fail(st, 409, "Operation cannot be fulfilled on %s \"%s\": %s", what, name, why);
    about(st, r, name);
    return -1;
}

static const struct {
    const char *word, *reason;
} values[] = {
    [STATUS_VALUE_INVALID] = {"Invalid value", "FieldValueInvalid"},
    [STATUS_VALUE_REQUIRED] = {"Required value", "FieldValueRequired"},
    [STATUS_VALUE_UNSUPPORTED] = {"Unsupported value", "FieldValueNotSupported"},
    [STATUS_VALUE_DUPLICATE] = {"Duplicate value", "FieldValueDuplicate"},
    [STATUS_VALUE_FORBIDDEN] = {"Forbidden", "FieldValueForbidden"},
    [STATUS_VALUE_TOO_LONG] = {"Too long", "FieldValueTooLong"},
    [STATUS_VALUE_TOO_MANY] = {"Too many", "FieldValueTooMany"},
};
_Static_assert(FERRY_COUNT(values) == STATUS_VALUE_COUNT, "one for each");

int status_invalid(struct status *st, const struct api_resource *r, const char *name,
                   const char *field, enum status_value value, const char *fmt, ...)
{
    char detail[FERRY_ERROR_TEXT - 20], why[FERRY_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    snprintf(why, sizeof(why), "%s%s%s", values[value].word, *detail ? ": " : "", detail);
    status_fail(st, 422, "%s%s%s \"%s\" is invalid: %s%s%s", r->kind_name, *r->group ? "." : "",
                r->group, name ? name : "", field, *field ? ": " : "", why);
    about(st, r, name);
    snprintf(st->field, sizeof(st->field), "%s", field);
    snprintf(st->why, sizeof(st->why), "%s", why);
    st->value = value;
    return -1;
}

/* As Kubernetes writes several: `... is invalid: [FIELD: why, FIELD: why]`. */
static void message_more(struct status *st, const struct status_cause *c)
{
    static const char mark[] = " is invalid: ";
    char *at = strstr(st->message, mark);
    size_t len = strlen(st->message), size = sizeof(st->message);
    char *list = at ? at + strlen(mark) : NULL;

    if (!list || len + strlen(c->field) + strlen(c->why) + 8 > size) {
        return;
    }
    if (st->n_more == 1) {
        memmove(list + 1, list, strlen(list) + 1);
        *list = '[';
    } else {
        st->message[len - 1] = '\0'; /* the bracket */
    }
    len = strlen(st->message);
    snprintf(st->message + len, size - len, ", %s: %s]", c->field, c->why);
}

void status_invalid_more(struct status *st, const char *field, enum status_value value,
                         const char *why)
{
    if (st->n_more == STATUS_MORE_CAUSES) {
        return;
    }
    struct status_cause *c = &st->more[st->n_more++];
    snprintf(c->field, sizeof(c->field), "%s", field);
    snprintf(c->why, sizeof(c->why), "%s: %.*s", values[value].word, FERRY_ERROR_TEXT - 32, why);
    c->reason = values[value].reason;
    message_more(st, c);
}

int status_forbidden(struct status *st, const struct api_resource *r, const char *name,
                     const char *fmt, ...)
{
    char why[FERRY_ERROR_TEXT], what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    status_resource_name(r, what, sizeof(what));
    status_fail(st, 403, "%s \"%s\" is forbidden: %s", what, name ? name : "", why);
    about(st, r, name);
    return -1;
}

int status_of_error(struct status *st, const struct ferry_error *err)
{
    static const int codes[FERRY_CLASS_COUNT] = {
        [FERRY_RETRY] = 503,   [FERRY_CONFLICT] = 409, [FERRY_NOT_FOUND] = 404,
        [FERRY_INVALID] = 400, [FERRY_DENIED] = 403,   [FERRY_CANCELLED] = 503,
        [FERRY_PEER] = 400,    [FERRY_FATAL] = 500,
    };
    int code = err->cls < FERRY_CLASS_COUNT ? codes[err->cls] : 500;

    return status_fail(st, code ? code : 500, "%s", err->msg);
}

/* Names come from addresses, which may hold any bytes, and long ones are cut, maybe inside a
 * character: what is left over is a question mark. */
static yyjson_mut_val *text(yyjson_mut_doc *doc, const char *s)
{
    ferry_cleanup_buf struct ferry_buf b = {0};

    while (*s) {
        size_t n = ferry_utf8_len(s);

        ferry_buf_append(&b, n ? s : "?", n ? n : 1);
        s += n ? n : 1;
    }
    return yyjson_mut_strcpy(doc, b.data ? b.data : "");
}

static void add_text(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key, const char *s)
{
    yyjson_mut_obj_add_val(doc, obj, key, text(doc, s));
}

static bool has_cause(const struct status *st)
{
    return st->cause && *st->cause;
}

static void add_cause(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *reason,
                      const char *why, const char *field)
{
    yyjson_mut_val *c = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_str(doc, c, "reason", reason);
    if (*why) { /* kubectl shows this instead of the message */
        add_text(doc, c, "message", why);
        add_text(doc, c, "field", field);
    }
}

static void add_details(yyjson_mut_doc *doc, yyjson_mut_val *d, const struct status *st)
{
    if (st->resource) {
        add_text(doc, d, "name", st->name);
        yyjson_mut_obj_add_str(doc, d, "group", st->resource->group);
        /* as Kubernetes has it: what is invalid is an object, what is not found is of a resource */
        yyjson_mut_obj_add_str(doc, d, "kind",
                               st->code == 422 ? st->resource->kind_name : st->resource->plural);
    }
    if (!*st->why && !has_cause(st)) {
        return;
    }
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, d, "causes");
    add_cause(doc, list, has_cause(st) ? st->cause : values[st->value].reason, st->why, st->field);
    for (size_t i = 0; i < st->n_more; i++) {
        add_cause(doc, list, st->more[i].reason, st->more[i].why, st->more[i].field);
    }
}

char *status_text(const struct status *st)
{
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc);

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "kind", "Status");
    yyjson_mut_obj_add_str(doc, root, "apiVersion", "v1");
    yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_obj_add_str(doc, root, "status", st->code < 300 ? "Success" : "Failure");
    if (*st->message) {
        add_text(doc, root, "message", st->message);
    }
    if (st->reason && *st->reason) {
        yyjson_mut_obj_add_str(doc, root, "reason", st->reason);
    }
    if (st->resource || has_cause(st)) {
        add_details(doc, yyjson_mut_obj_add_obj(doc, root, "details"), st);
    }
    yyjson_mut_obj_add_int(doc, root, "code", st->code);
    char *json = json_doc_text(doc, YYJSON_WRITE_NOFLAG, NULL);
    if (!json) {
        abort();
    }
    return json;
}
