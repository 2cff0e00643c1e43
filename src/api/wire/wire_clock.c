#include "api/wire/wire_clock.h"

bool wire_clock_read(const char *text, struct wire_clock *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    yyjson_val *root = yyjson_doc_get_root(doc), *one;
    yyjson_arr_iter it = yyjson_arr_iter_with(yyjson_obj_get(root, "steps"));

    *ret = (struct wire_clock){0};
    wire_json_copy(root, "boot", ret->boot, sizeof(ret->boot));
    while (ret->n < WIRE_CLOCK_STEPS && (one = yyjson_arr_iter_next(&it))) {
        struct wire_clock_step step = {
            .before_ms = wire_json_number(one, "beforeMs", 1, WIRE_MS_MAX, 0),
            .by_ms = wire_json_number(one, "byMs", -WIRE_MS_MAX, WIRE_MS_MAX, 0),
        };

        if (step.before_ms && step.by_ms) {
            ret->steps[ret->n++] = step;
        }
    }
    return doc != NULL;
}

char *wire_clock_text(const struct wire_clock *c)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    yyjson_mut_obj_add_str(doc, o, "boot", c->boot);
    yyjson_mut_val *steps = yyjson_mut_obj_add_arr(doc, o, "steps");
    for (size_t i = 0; i < c->n; i++) {
        yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, steps);

        yyjson_mut_obj_add_int(doc, one, "beforeMs", c->steps[i].before_ms);
        yyjson_mut_obj_add_int(doc, one, "byMs", c->steps[i].by_ms);
    }
    return wire_json_write(doc);
}
