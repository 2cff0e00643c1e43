#include "api/spec/vmi_defaults.h"

#include <stddef.h>

#include "json/doc.h"

/* A machine with more is refused (vmi_rules.c). */
enum { LIST_MAX = 256 };

static yyjson_mut_val *child(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(object, key);

    if (!v && yyjson_mut_is_obj(object)) {
        v = yyjson_mut_obj(doc);
        yyjson_mut_obj_add(object, yyjson_mut_str(doc, key), v);
    }
    return v;
}

static void add_disk(yyjson_mut_doc *doc, yyjson_mut_val *disks, const char *name)
{
    yyjson_mut_val *d = yyjson_mut_arr_add_obj(doc, disks);

    yyjson_mut_obj_add_strcpy(doc, d, "name", name);
    yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, d, "disk"), "bus", "sata");
}

bool vmi_defaults(yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    yyjson_mut_val *spec = yyjson_mut_obj_get(object, "spec");
    yyjson_mut_val *volumes = yyjson_mut_obj_get(spec, "volumes"), *v;
    bool changed = false;
    size_t i, max;

    if (yyjson_mut_arr_size(volumes) == 0 || yyjson_mut_arr_size(volumes) > LIST_MAX ||
        !yyjson_mut_is_obj(yyjson_mut_obj_get(spec, "domain"))) {
        return false;
    }
    yyjson_mut_val *devices = child(doc, yyjson_mut_obj_get(spec, "domain"), "devices");
    yyjson_mut_val *disks = yyjson_mut_obj_get(devices, "disks");
    yyjson_mut_val *filesystems = yyjson_mut_obj_get(devices, "filesystems");
    if (!yyjson_mut_is_obj(devices) || (disks && !yyjson_mut_is_arr(disks)) ||
        yyjson_mut_arr_size(disks) > LIST_MAX || yyjson_mut_arr_size(filesystems) > LIST_MAX) {
        return false;
    }
    yyjson_mut_arr_foreach(volumes, i, max, v)
    {
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(v, "name"));

        if (!name || yyjson_mut_obj_get(v, "memoryDump") || json_doc_has_named(disks, name) ||
            json_doc_has_named(filesystems, name)) {
            continue;
        }
        if (!disks) {
            disks = yyjson_mut_obj_add_arr(doc, devices, "disks");
        }
        add_disk(doc, disks, name);
        changed = true;
    }
    return changed;
}
