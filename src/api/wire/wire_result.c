#include "api/wire/wire_result.h"

bool wire_result_read(const char *text, struct wire_result *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    const yyjson_val *r = yyjson_doc_get_root(doc);

    *ret = (struct wire_result){
        .downtime_ms = wire_json_number(r, "downtimeMs", 0, WIRE_MS_MAX, -1),
        .total_ms = wire_json_number(r, "totalMs", 0, WIRE_MS_MAX, -1),
        .transferred_bytes = wire_json_number(r, "transferredBytes", 0, WIRE_BYTES_MAX, -1),
    };
    return doc != NULL;
}

static void put(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, int64_t n)
{
    if (n >= 0) {
        yyjson_mut_obj_add_int(doc, o, key, n);
    }
}

char *wire_result_text(const struct wire_result *r)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    put(doc, o, "totalMs", r->total_ms);
    put(doc, o, "downtimeMs", r->downtime_ms);
    put(doc, o, "transferredBytes", r->transferred_bytes);
    return wire_json_write(doc);
}
