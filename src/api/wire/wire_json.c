#include "api/wire/wire_json.h"

#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

yyjson_doc *wire_json_read(const char *text)
{
    size_t len = text ? strnlen(text, WIRE_TEXT_MAX + 1) : 0;
    api_cleanup_doc yyjson_doc *doc = NULL;

    if (len == 0 || len > WIRE_TEXT_MAX || api_json_parse(text, len, &doc, NULL) < 0 ||
        !yyjson_is_obj(yyjson_doc_get_root(doc))) {
        return NULL;
    }
    return ferry_take_ptr(doc);
}

int64_t wire_json_number(const yyjson_val *o, const char *key, int64_t min, int64_t max,
                         int64_t absent)
{
    int64_t n;

    return api_json_get_int(yyjson_obj_get((yyjson_val *)o, key), &n) && n >= min && n <= max
               ? n
               : absent;
}

const char *wire_json_text(const yyjson_val *o, const char *key, size_t max)
{
    yyjson_val *v = yyjson_obj_get((yyjson_val *)o, key);

    return yyjson_is_str(v) && yyjson_get_len(v) <= max ? yyjson_get_str(v) : NULL;
}

void wire_json_copy(const yyjson_val *o, const char *key, char *ret, size_t size)
{
    const char *text = wire_json_text(o, key, size - 1);
    size_t len = text ? strlen(text) : 0;

    memcpy(ret, text ? text : "", len + 1);
}

int64_t wire_json_time(const yyjson_val *o, const char *key)
{
    const char *text = wire_json_text(o, key, 64);
    int64_t ms = 0;

    return text && api_time_parse(text, &ms, NULL) == 0 ? ms : 0;
}

yyjson_mut_doc *wire_json_new(yyjson_mut_val **ret_root)
{
    yyjson_mut_doc *doc = json_doc_new();

    *ret_root = yyjson_mut_obj(doc);
    if (!*ret_root) {
        abort(); /* out of memory */
    }
    yyjson_mut_doc_set_root(doc, *ret_root);
    return doc;
}

void wire_json_put(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *text)
{
    if (!ferry_str_empty(text)) {
        yyjson_mut_obj_add_str(doc, o, key, text);
    }
}

void wire_json_put_time(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, int64_t unix_ms)
{
    char text[FERRY_RFC3339_SIZE];

    if (unix_ms) {
        yyjson_mut_obj_add_strcpy(doc, o, key, ferry_rfc3339(unix_ms, text));
    }
}

char *wire_json_write(yyjson_mut_doc *doc_take)
{
    yyjson_write_err err = {0};
    char *text = yyjson_mut_write_opts(doc_take, 0, NULL, NULL, &err);

    yyjson_mut_doc_free(doc_take);
    if (!text && err.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION) {
        abort();
    }
    return text;
}
