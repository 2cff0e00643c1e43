#include "handler/owner/guest_interfaces.h"

#include <yyjson.h>

#include "api/guest_nic.h"
#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_addresses.h"
#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "json/doc.h"

static void put_str(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, const char *value)
{
    yyjson_mut_obj_put(o, yyjson_mut_str(doc, key), yyjson_mut_strcpy(doc, value));
}

/* The first is that of the interface. */
static void put_addresses(yyjson_mut_doc *doc, yyjson_mut_val *o,
                          const struct wire_interface *given)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    char text[API_IP_TEXT];

    for (size_t i = 0; i < given->n; i++) {
        yyjson_mut_arr_add_strcpy(doc, list, api_ip_text(&given->nets[i].ip, text));
    }
    if (given->n > 0) {
        put_str(doc, o, "ipAddress", api_ip_text(&given->nets[0].ip, text));
        yyjson_mut_obj_put(o, yyjson_mut_str(doc, "ipAddresses"), list);
    }
}

static void put_nic(yyjson_mut_doc *doc, yyjson_mut_val *list, const struct api_guest_nic *nic,
                    const struct wire_addresses *addresses)
{
    const struct wire_interface *given = wire_addresses_of(addresses, nic->name);
    yyjson_mut_val *o = json_doc_named(doc, list, nic->name);

    put_str(doc, o, "mac", nic->mac);
    if (!yyjson_mut_obj_get(o, "infoSource")) {
        put_str(doc, o, "infoSource", nic->network ? "domain, multus-status" : "domain");
    }
    if (nic->network && !yyjson_mut_obj_get(o, "podInterfaceName")) {
        ferry_cleanup_free char *tap = ferry_asprintf("tap%u", nic->tap);

        put_str(doc, o, "podInterfaceName", tap);
    }
    if (given) {
        put_addresses(doc, o, given);
    }
}

char *guest_interfaces(const struct api_vmi *vmi)
{
    struct api_guest_nic nics[API_GUEST_NICS];
    size_t n = api_guest_nics(vmi, nics);
    const char *text = api_map_get(&vmi->meta.annotations, ANNOTATION_ADDRESSES);
    wire_cleanup_addresses struct wire_addresses given = {0};
    api_cleanup_mut_doc yyjson_mut_doc *doc = json_doc_new();
    yyjson_val *old = yyjson_obj_get((yyjson_val *)vmi->status, "interfaces");

    if (n == 0 || (text && !wire_addresses_read(text, &given))) {
        return NULL;
    }
    yyjson_mut_val *list = yyjson_is_arr(old) ? yyjson_val_mut_copy(doc, old) : yyjson_mut_arr(doc);
    for (size_t i = 0; i < n; i++) {
        put_nic(doc, list, &nics[i], &given);
    }
    yyjson_mut_doc_set_root(doc, list);
    yyjson_mut_val *before = old ? yyjson_val_mut_copy(doc, old) : NULL;
    return before && yyjson_mut_equals(before, list) ? NULL : json_doc_text(doc, 0, NULL);
}
