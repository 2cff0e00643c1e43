#include "api/address_name.h"

#include <stdio.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "json/doc.h"

#define PREFIX "ferry-address-"
#define V6_END "-v6"

static void exchange(char *s, char from, char to)
{
    for (; *s; s++) {
        if (*s == from) {
            *s = to;
        }
    }
}

/* An IPv6 address may end in "::", an object's name must not end in "-". */
const char *api_address_name(const struct api_ip *ip, char ret[API_ADDRESS_NAME])
{
    char text[API_IP_TEXT];

    api_ip_text(ip, text);
    exchange(text, ':', '-');
    snprintf(ret, API_ADDRESS_NAME, PREFIX "%s%s", text, api_ip_is_v4(ip) ? "" : V6_END);
    return ret;
}

bool api_address_of_name(const char *name, struct api_ip *ret)
{
    char again[API_ADDRESS_NAME];

    if (!ferry_str_starts(name, PREFIX) || strlen(name) >= API_ADDRESS_NAME) {
        return false;
    }
    size_t len = strlen(name) - strlen(PREFIX);
    bool v6 = ferry_str_ends(name, V6_END) && len > strlen(V6_END);
    ferry_cleanup_free char *text =
        ferry_strndup(name + strlen(PREFIX), v6 ? len - strlen(V6_END) : len);
    if (v6) {
        exchange(text, '-', ':');
    }
    /* One name per address: what is written otherwise is not a claim. */
    return api_ip_parse(text, ret) && ferry_streq(api_address_name(ret, again), name);
}

static void add_owner(yyjson_mut_doc *doc, yyjson_mut_val *meta, const struct api_object *owner)
{
    const struct api_resource *r = api_resource_of_kind(owner->kind);
    yyjson_mut_val *o =
        yyjson_mut_arr_add_obj(doc, yyjson_mut_obj_add_arr(doc, meta, "ownerReferences"));
    ferry_cleanup_free char *version =
        *r->group ? ferry_asprintf("%s/%s", r->group, r->version) : ferry_strdup(r->version);

    yyjson_mut_obj_add_strcpy(doc, o, "apiVersion", version);
    yyjson_mut_obj_add_str(doc, o, "kind", r->kind_name);
    yyjson_mut_obj_add_str(doc, o, "name", owner->meta->name);
    yyjson_mut_obj_add_str(doc, o, "uid", owner->meta->uid);
}

char *api_address_manifest(const char *name, const char *holder, const struct api_object *owner)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = json_doc_object(doc);

    yyjson_mut_obj_add_str(doc, o, "apiVersion", "coordination.k8s.io/v1");
    yyjson_mut_obj_add_str(doc, o, "kind", "Lease");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, o, "metadata");
    yyjson_mut_obj_add_str(doc, meta, "name", name);
    yyjson_mut_obj_add_str(doc, meta, "namespace", API_ADDRESS_NAMESPACE);
    yyjson_mut_val *labels = yyjson_mut_obj_add_obj(doc, meta, "labels");
    yyjson_mut_obj_add_str(doc, labels, LABEL_ADDRESS, "");
    if (owner) {
        add_owner(doc, meta, owner);
    }
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, o, "spec");
    yyjson_mut_obj_add_str(doc, spec, "holderIdentity", holder);
    return json_doc_take(doc);
}
