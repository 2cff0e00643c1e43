#include "handler/owner/guest_interfaces.h"

#include <string.h>
#include <yyjson.h>

#include "api/guest_nic.h"
#include "api/json.h"
#include "api/object.h"
#include "base/str.h"
#include "json/doc.h"

static yyjson_mut_val *entry_of(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *name)
{
    yyjson_mut_val *e;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, e)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(e, "name")), name)) {
            return e;
        }
    }
    e = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_strcpy(doc, e, "name", name);
    return e;
}

static void put_str(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *value)
{
    yyjson_mut_obj_put(o, yyjson_mut_str(doc, key), yyjson_mut_strcpy(doc, value));
}

/* `given` is the list of "ADDRESS/PREFIX"; the first is that of the interface. */
static void put_addresses(yyjson_mut_doc *doc, yyjson_mut_val *o, yyjson_val *given)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    yyjson_val *a;
    size_t i, max;

    yyjson_arr_foreach(given, i, max, a)
    {
        const char *text = yyjson_get_str(a);

        if (text) {
            yyjson_mut_arr_add_strncpy(doc, list, text, strcspn(text, "/"));
        }
    }
    if (yyjson_mut_arr_size(list) > 0) {
        put_str(doc, o, "ipAddress", yyjson_mut_get_str(yyjson_mut_arr_get_first(list)));
        yyjson_mut_obj_put(o, yyjson_mut_str(doc, "ipAddresses"), list);
    }
}

static void put_nic(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct api_guest_nic *nic,
                    yyjson_val *addresses)
{
    yyjson_mut_val *o = entry_of(doc, list, nic->name);

    put_str(doc, o, "mac", nic->mac);
    if (!yyjson_mut_obj_get(o, "infoSource")) {
        put_str(doc, o, "infoSource", nic->network ? "domain, multus-status" : "domain");
    }
    if (nic->network && !yyjson_mut_obj_get(o, "podInterfaceName")) {
        ferry_cleanup_free char *tap = ferry_asprintf("tap%u", nic->tap);

        put_str(doc, o, "podInterfaceName", tap);
    }
    put_addresses(doc, o, yyjson_obj_get(addresses, nic->name));
}

char *guest_interfaces(const struct api_vmi *vmi)
{
    struct api_guest_nic nics[API_GUEST_NICS];
    size_t n = api_guest_nics(vmi, nics);
    const char *text = api_map_get(&vmi->meta.annotations, API_GUEST_ADDRESSES);
    api_cleanup_doc yyjson_doc *given = NULL;
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_val *old = yyjson_obj_get((yyjson_val *)vmi->status, "interfaces");

    if (n == 0 || (text && api_json_parse(text, strlen(text), &given, NULL) < 0)) {
        return NULL;
    }
    yyjson_mut_val *list = yyjson_is_arr(old) ? yyjson_val_mut_copy(doc, old) : yyjson_mut_arr(doc);
    for (size_t i = 0; i < n; i++) {
        put_nic(doc, list, &nics[i], yyjson_doc_get_root(given));
    }
    yyjson_mut_doc_set_root(doc, list);
    yyjson_mut_val *before = old ? yyjson_val_mut_copy(doc, old) : NULL;
    return before && yyjson_mut_equals(before, list) ? NULL : json_doc_text(doc, 0, NULL);
}
