#include "api/wire/wire_trouble.h"

#include <stdio.h>

#include "base/str.h"

enum { WORD_MAX = 64 };

static enum ferry_class class_of(const char *text)
{
    for (int c = FERRY_OK; text && c < FERRY_CLASS_COUNT; c++) {
        if (ferry_streq(ferry_class_name((enum ferry_class)c), text)) {
            return (enum ferry_class)c;
        }
    }
    return FERRY_OK;
}

bool wire_trouble_of(const char *text, const char *uid, struct wire_trouble *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    const yyjson_val *o = yyjson_doc_get_root(doc);
    const char *message = wire_json_text(o, "message", WIRE_TEXT_MAX);
    const char *about = wire_json_text(o, "uid", WIRE_UID - 1);

    *ret = (struct wire_trouble){
        .reason = wire_reason_of(wire_json_text(o, "reason", WORD_MAX)),
        .cls = class_of(wire_json_text(o, "class", WORD_MAX)),
    };
    if (!about || !ferry_streq(about, uid) || !wire_reason_is_trouble(ret->reason)) {
        *ret = (struct wire_trouble){0};
        return false;
    }
    message = message ? message : "";
    snprintf(ret->message, sizeof(ret->message), "%.*s",
             (int)ferry_utf8_fit(message, sizeof(ret->message) - 1), message);
    return true;
}

char *wire_trouble_text(const char *uid, const struct wire_trouble *t)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    yyjson_mut_obj_add_str(doc, o, "uid", uid);
    yyjson_mut_obj_add_str(doc, o, "reason", wire_reason_text(t->reason));
    yyjson_mut_obj_add_str(doc, o, "class", ferry_class_name(t->cls));
    yyjson_mut_obj_add_str(doc, o, "message", t->message);
    return wire_json_write(doc);
}
