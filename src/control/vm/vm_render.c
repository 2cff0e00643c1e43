#include "control/vm/vm_render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/guest_nic.h"
#include "api/instancetype/matcher.h"
#include "api/json.h"
#include "api/spec/vmi_defaults.h"
#include "api/wire/wire_keys.h"
#include "base/hash.h"
#include "base/str.h"
#include "json/doc.h"

/* Members of an object are added up, so that their order is all one. */
static uint64_t hash_val(yyjson_val *v, bool top)
{
    uint64_t h = ferry_hash(FERRY_HASH_BASIS, (const uint8_t[]){yyjson_get_tag(v)}, 1);
    yyjson_val *key, *item;
    size_t i, max;

    if (yyjson_is_obj(v)) {
        yyjson_obj_foreach(v, i, max, key, item)
        {
            const char *name = yyjson_get_str(key);
            uint64_t value = hash_val(item, false);

            /* What an instance can follow by a move needs no restart. */
            if (!(top && strcmp(name, "volumes") == 0) && strcmp(name, "networkName") != 0) {
                h += ferry_hash(ferry_hash(FERRY_HASH_BASIS, name, strlen(name)), &value,
                                sizeof(value));
            }
        }
        return h;
    }
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach(v, i, max, item)
        {
            uint64_t value = hash_val(item, false);

            h = ferry_hash(h, &value, sizeof(value));
        }
        return h;
    }
    ferry_cleanup_free char *text = json_doc_val_text(v, 0, NULL);
    return text ? ferry_hash(h, text, strlen(text)) : h;
}

const char *vm_template_tag(const struct api_object *vm, char ret[VM_TEMPLATE_TAG])
{
    yyjson_val *spec = yyjson_obj_get((yyjson_val *)vm->u.vm.template_, "spec");
    uint64_t h = spec ? hash_val(spec, true) : 0;

    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (matcher_read(vm->root, of, &m)) {
            const char *what = m.revision ? m.revision : "";

            h = ferry_hash(ferry_hash(h, &of, sizeof(of)), what, strlen(what));
        }
    }
    snprintf(ret, VM_TEMPLATE_TAG, "%016" PRIx64, h);
    return ret;
}

static void put(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, const char *value)
{
    yyjson_mut_obj_put(to, yyjson_mut_strcpy(doc, key), yyjson_mut_strcpy(doc, value));
}

/* The template's map, or an empty one, as a member of `meta`. */
static void take_map(yyjson_mut_doc *doc, yyjson_mut_val *meta, yyjson_val *from, const char *name)
{
    yyjson_val *own = yyjson_obj_get(from, name);
    yyjson_mut_val *map = yyjson_is_obj(own) ? yyjson_val_mut_copy(doc, own) : yyjson_mut_obj(doc);

    yyjson_mut_obj_add_val(doc, meta, name, map);
}

/* By which the instance says what it was made of. */
static void put_names(yyjson_mut_doc *doc, yyjson_mut_val *annotations, const yyjson_val *vm)
{
    static const char *const keys[][2] = {
        [MATCHER_INSTANCETYPE] = {ANNOTATION_CLUSTER_INSTANCETYPE, ANNOTATION_INSTANCETYPE},
        [MATCHER_PREFERENCE] = {ANNOTATION_CLUSTER_PREFERENCE, ANNOTATION_PREFERENCE}};

    for (enum matcher_of of = 0; of < MATCHER_COUNT; of++) {
        struct matcher m;

        if (matcher_read(vm, of, &m) && m.resource && m.name) {
            put(doc, annotations, keys[of][m.resource->namespaced], m.name);
        }
    }
}

static void render_metadata(yyjson_mut_doc *doc, yyjson_mut_val *meta, const struct api_object *vm)
{
    yyjson_mut_val *annotations = yyjson_mut_obj_get(meta, "annotations");
    char generation[32], tag[VM_TEMPLATE_TAG];

    put(doc, meta, "name", vm->meta->name);
    put(doc, meta, "namespace", vm->meta->namespace_);
    snprintf(generation, sizeof(generation), "%" PRId64,
             api_json_int(vm->root, "/metadata/generation", 0));
    put(doc, annotations, ANNOTATION_VM_GENERATION, generation);
    put(doc, annotations, ANNOTATION_VM_TEMPLATE, vm_template_tag(vm, tag));
    put_names(doc, annotations, vm->root);
    yyjson_mut_val *owner =
        yyjson_mut_arr_add_obj(doc, yyjson_mut_obj_add_arr(doc, meta, "ownerReferences"));
    put(doc, owner, "apiVersion", "kubevirt.io/v1");
    put(doc, owner, "kind", "VirtualMachine");
    put(doc, owner, "name", vm->meta->name);
    put(doc, owner, "uid", vm->meta->uid);
    yyjson_mut_obj_add_bool(doc, owner, "controller", true);
    yyjson_mut_obj_add_bool(doc, owner, "blockOwnerDeletion", true);
}

/* Instances come and go; the guest's network cards are the VM's. One made of the VM stays, and is
 * in the instance's spec, so that whoever reads it, of whatever version, has the same. */
static void give_macs(yyjson_mut_doc *doc, yyjson_mut_val *spec, const struct api_object *vm)
{
    yyjson_mut_val *list = yyjson_mut_ptr_get(spec, "/domain/devices/interfaces"), *nic;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, nic)
    {
        const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(nic, "name"));
        char mac[API_MAC_TEXT];

        /* A card that is the host's has an address of its own. */
        if (name && !yyjson_mut_obj_get(nic, "sriov") &&
            ferry_str_empty(yyjson_mut_get_str(yyjson_mut_obj_get(nic, "macAddress")))) {
            api_guest_mac(vm->meta->uid, name, mac);
            put(doc, nic, "macAddress", mac);
        }
    }
}

char *vm_render(const struct api_object *vm, const struct instancetype_pair *sizing)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_val *template = (yyjson_val *)vm->u.vm.template_;
    yyjson_val *own = yyjson_obj_get(template, "spec");
    yyjson_mut_val *spec = own ? yyjson_val_mut_copy(doc, own) : yyjson_mut_obj(doc);
    ferry_cleanup_buf struct ferry_buf conflicts = {0}; /* none: whoever plans this has asked */

    put(doc, root, "apiVersion", "kubevirt.io/v1");
    put(doc, root, "kind", "VirtualMachineInstance");
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    take_map(doc, meta, yyjson_obj_get(template, "metadata"), "labels");
    take_map(doc, meta, yyjson_obj_get(template, "metadata"), "annotations");
    (void)instancetype_apply(doc, spec, meta, sizing, "spec", &conflicts);
    render_metadata(doc, meta, vm);
    give_macs(doc, spec, vm);
    yyjson_mut_obj_add_val(doc, root, "spec", spec);
    (void)vmi_defaults(doc, root);
    return json_doc_take(doc);
}
