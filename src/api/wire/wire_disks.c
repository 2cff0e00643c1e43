#include "api/wire/wire_disks.h"

#include "base/str.h"

bool wire_disks_read(const yyjson_val *list, struct wire_disks *ret)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);
    yyjson_val *item;

    ret->n = 0;
    if (!yyjson_is_arr((yyjson_val *)list) || yyjson_arr_size((yyjson_val *)list) > WIRE_DISKS) {
        return false;
    }
    while ((item = yyjson_arr_iter_next(&it))) {
        struct wire_disk *d = &ret->list[ret->n];

        wire_json_copy(item, "name", d->name, sizeof(d->name));
        d->bytes = wire_json_number(item, "bytes", 0, WIRE_BYTES_MAX, -1);
        if (!d->name[0] || d->bytes < 0) {
            ret->n = 0;
            return false;
        }
        ret->n++;
    }
    return true;
}

bool wire_disks_of(const char *text, const char *uid, struct wire_disks *ret)
{
    api_cleanup_doc yyjson_doc *doc = wire_json_read(text);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *about = wire_json_text(root, "uid", WIRE_UID - 1);

    ret->n = 0;
    return about && ferry_streq(about, uid) && wire_disks_read(yyjson_obj_get(root, "disks"), ret);
}

static void put_list(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct wire_disks *d)
{
    for (size_t i = 0; i < d->n; i++) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, o, "name", d->list[i].name);
        yyjson_mut_obj_add_int(doc, o, "bytes", d->list[i].bytes);
    }
}

char *wire_disks_list(const struct wire_disks *d)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);
    yyjson_mut_val *list = yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, list);
    put_list(doc, list, d);
    return wire_json_write(doc);
}

char *wire_disks_text(const char *uid, const struct wire_disks *d)
{
    yyjson_mut_val *o;
    yyjson_mut_doc *doc = wire_json_new(&o);

    yyjson_mut_obj_add_str(doc, o, "uid", uid);
    put_list(doc, yyjson_mut_obj_add_arr(doc, o, "disks"), d);
    return wire_json_write(doc);
}
