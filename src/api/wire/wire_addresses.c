#include "api/wire/wire_addresses.h"

#include "base/str.h"

static bool read_nets(yyjson_val *list, struct wire_interface *ret)
{
    yyjson_val *v;
    size_t i, max;

    if (!yyjson_is_arr(list) || yyjson_arr_size(list) > API_NAD_POOLS) {
        return false;
    }
    yyjson_arr_foreach(list, i, max, v)
    {
        if (!yyjson_is_str(v) || !api_ip_parse_net(yyjson_get_str(v), &ret->nets[ret->n++])) {
            return false;
        }
    }
    return true;
}

bool wire_addresses_read(const char *text, struct wire_addresses *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    struct wire_addresses a = {0};
    yyjson_val *key, *value;
    size_t i, max;

    *ret = a;
    if (!doc || yyjson_obj_size(yyjson_doc_get_root(doc)) > API_GUEST_NICS) {
        return false;
    }
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, max, key, value)
    {
        a.list[a.n].name = yyjson_get_str(key);
        if (!read_nets(value, &a.list[a.n++])) {
            return false;
        }
    }
    a.doc = ferry_take_ptr(doc);
    *ret = a;
    return true;
}

void wire_addresses_done(struct wire_addresses *a)
{
    yyjson_doc_free(a->doc);
    *a = (struct wire_addresses){0};
}

const struct wire_interface *wire_addresses_of(const struct wire_addresses *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++) {
        if (ferry_streq(a->list[i].name, name)) {
            return &a->list[i];
        }
    }
    return NULL;
}

char *wire_addresses_text(const struct wire_addresses *a)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    for (size_t i = 0; i < a->n; i++) {
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, o, a->list[i].name);

        for (size_t k = 0; k < a->list[i].n; k++) {
            char text[API_IP_TEXT];

            yyjson_mut_arr_add_strcpy(doc, list, api_ip_net_text(&a->list[i].nets[k], text));
        }
    }
    return wire_json_write(doc);
}
