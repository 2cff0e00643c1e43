#include "api/wire/wire_queue.h"

enum { WORD_MAX = 64, BLOCKER_MAX = 512 };

bool wire_queue_read(const char *text, struct wire_queue *ret)
{
    yyjson_doc *doc = wire_json_read(text);
    const yyjson_val *q = yyjson_doc_get_root(doc);

    *ret = (struct wire_queue){0};
    if (!doc) {
        return false;
    }
    *ret = (struct wire_queue){
        .reason = wire_reason_of(wire_json_text(q, "reason", WORD_MAX)),
        .message = wire_json_text(q, "message", WIRE_TEXT_MAX),
        .blocker = wire_json_text(q, "blocker", BLOCKER_MAX),
        .position = wire_json_number(q, "position", 0, INT32_MAX, 0),
        .since_ms = wire_json_time(q, "since"),
        .check_s = wire_json_number(q, "checkSeconds", 0, INT32_MAX, 0),
        .deadline_ms = wire_json_time(q, "deadline"),
        .doc = doc,
    };
    ret->lack_text = wire_error_lack_read(q, &ret->lack);
    return true;
}

void wire_queue_done(struct wire_queue *q)
{
    yyjson_doc_free(q->doc);
    *q = (struct wire_queue){0};
}

char *wire_queue_text(const struct wire_queue *q)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    wire_json_put(doc, o, "reason", wire_reason_text(q->reason));
    wire_json_put(doc, o, "message", q->message);
    wire_json_put(doc, o, "blocker", q->blocker);
    wire_error_lack_write(doc, o, q->lack, q->lack_text);
    yyjson_mut_obj_add_int(doc, o, "position", q->position);
    wire_json_put_time(doc, o, "since", q->since_ms);
    if (q->check_s) {
        yyjson_mut_obj_add_int(doc, o, "checkSeconds", q->check_s);
    }
    wire_json_put_time(doc, o, "deadline", q->deadline_ms);
    return wire_json_write(doc);
}
