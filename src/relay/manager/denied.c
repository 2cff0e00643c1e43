#include "relay/manager/denied.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { NODE_MAX = 253 };

static int read_text(yyjson_val *row, const char *name, size_t max, const char **ret,
                     struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get(row, name);
    const char *text = yyjson_get_str(v);

    if (v && (!text || !*text || yyjson_get_len(v) > max || strlen(text) != yyjson_get_len(v))) {
        return ferry_fail(err, FERRY_INVALID, "nodes[].%s: must be a text of at most %zu bytes",
                          name, max);
    }
    *ret = text;
    return 0;
}

static int read_row(yyjson_val *row, struct tls_denial *ret, struct ferry_error *err)
{
    yyjson_val *before = yyjson_obj_get(row, "before");
    int rc = read_text(row, "node", NODE_MAX, &ret->node, err);

    rc = rc < 0 ? rc : read_text(row, "generation", TLS_GENERATION_SIZE - 1, &ret->generation, err);
    if (rc < 0) {
        return rc;
    }
    if (!ret->node) {
        return ferry_fail(err, FERRY_INVALID, "nodes[].node: missing");
    }
    if (before && !yyjson_is_uint(before)) {
        return ferry_fail(err, FERRY_INVALID, "nodes[].before: must be a time in seconds");
    }
    ret->before_s = yyjson_get_sint(before);
    return ret->before_s < 0
               ? ferry_fail(err, FERRY_INVALID, "nodes[].before: must be a time in seconds")
               : 0;
}

int relay_denied_parse(const char *json, size_t len, struct relay_denied *ret,
                       struct ferry_error *err)
{
    struct relay_denied d = {.doc = yyjson_read(json, len, 0)};
    yyjson_val *nodes = yyjson_obj_get(yyjson_doc_get_root(d.doc), "nodes"), *row;
    yyjson_arr_iter it = yyjson_arr_iter_with(nodes);
    int rc = 0;

    if (!yyjson_is_arr(nodes) || yyjson_arr_size(nodes) > RELAY_DENIED_MAX) {
        rc =
            ferry_fail(err, FERRY_INVALID, "nodes: must be a list of at most %d", RELAY_DENIED_MAX);
    }
    d.list = rc == 0 ? ferry_xcalloc(yyjson_arr_size(nodes) + 1, sizeof(*d.list)) : NULL;
    while (rc == 0 && (row = yyjson_arr_iter_next(&it))) {
        rc = read_row(row, &d.list[d.n++], err);
    }
    if (rc < 0) {
        relay_denied_done(&d);
        return rc;
    }
    *ret = d;
    return 0;
}

void relay_denied_done(struct relay_denied *d)
{
    free(d->list);
    yyjson_doc_free(d->doc);
    *d = (struct relay_denied){0};
}
