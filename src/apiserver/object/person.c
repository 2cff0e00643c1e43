#include "apiserver/object/person.h"

#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

/* Where the parts of a guest stand in each kind. */
static const struct {
    enum api_kind kind;
    const char *metadata, *spec; /* spec: of the VMI, or NULL */
} places[] = {
    {API_KIND_VMI, "/metadata", "/spec"},
    {API_KIND_VM, "/spec/template/metadata", "/spec/template/spec"},
    {API_KIND_MIGRATION, "/metadata", NULL},
};

bool person_cares(const struct api_resource *r)
{
    for (size_t i = 0; i < FERRY_COUNT(places); i++) {
        if (r->kind == places[i].kind) {
            return true;
        }
    }
    return r->kind == API_KIND_POD;
}

static yyjson_val *at(const yyjson_val *object, const char *pointer)
{
    return object ? yyjson_ptr_get((yyjson_val *)object, pointer) : NULL;
}

static const char *name_of(const yyjson_val *object)
{
    const char *name = api_json_str(object, "/metadata/name");

    return name ? name : "";
}

/* ---- marks of Ferry's programs -----------------------------------------------------------------
 */

static bool is_reserved_label(const char *key)
{
    static const char *const reserved[] = {LABEL_CREATED_BY, LABEL_NODE_NAME,
                                           LABEL_TARGET_NODE_NAME, LABEL_MIGRATION_JOB_UID};

    for (size_t i = 0; i < FERRY_COUNT(reserved); i++) {
        if (ferry_streq(key, reserved[i])) {
            return true;
        }
    }
    return false;
}

/* A key that is in one of both with another value, or missing, in the other; or NULL. */
static const char *changed(const yyjson_val *one, const yyjson_val *other,
                           bool (*is_reserved)(const char *key))
{
    yyjson_val *key, *v;
    size_t i, max;

    yyjson_obj_foreach((yyjson_val *)one, i, max, key, v)
    {
        const char *name = yyjson_get_str(key);
        yyjson_val *same = is_reserved(name) ? yyjson_obj_get((yyjson_val *)other, name) : v;

        if (!same || !yyjson_equals(v, same)) {
            return name;
        }
    }
    return NULL;
}

static int check_marks(const struct api_resource *r, const char *place, const yyjson_val *old,
                       const yyjson_val *object, struct status *st)
{
    static const struct {
        const char *key;
        bool (*is_reserved)(const char *key);
    } marks[] = {{"labels", is_reserved_label}, {"annotations", wire_annotation_is_programs}};

    for (size_t i = 0; i < FERRY_COUNT(marks); i++) {
        const yyjson_val *before = yyjson_obj_get(at(old, place), marks[i].key);
        const yyjson_val *now = yyjson_obj_get(at(object, place), marks[i].key);
        const char *key = changed(now, before, marks[i].is_reserved);

        key = key ? key : changed(before, now, marks[i].is_reserved);
        if (key) {
            return status_forbidden(st, r, name_of(object),
                                    "%s of Ferry's programs may not be set or changed: %.100s",
                                    marks[i].key, key);
        }
    }
    return 0;
}

/* ---- ways out of the namespace -----------------------------------------------------------------
 */

/* One of the items of a list has this text there. */
static bool is_among(const yyjson_val *list, const char *pointer, const char *text)
{
    yyjson_arr_iter it = yyjson_arr_iter_with((yyjson_val *)list);

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(api_json_str(v, pointer), text)) {
            return true;
        }
    }
    return false;
}

/* What was there before stays: somebody who may put it there. */
static int check_paths(const struct api_resource *r, const yyjson_val *before,
                       const yyjson_val *spec, const yyjson_val *object,
                       const struct person_rights *rights, struct status *st)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(at(spec, "/volumes"));

    for (yyjson_val *v; !rights->host_paths && (v = yyjson_arr_iter_next(&it));) {
        const char *path = api_json_str(v, "/hostDisk/path");

        if (yyjson_obj_get(v, "hostDisk") &&
            !(path && is_among(at(before, "/volumes"), "/hostDisk/path", path))) {
            return status_forbidden(st, r, name_of(object),
                                    "a hostDisk is for those who may create persistentvolumes: "
                                    "use a persistentVolumeClaim");
        }
    }
    return 0;
}

static int check_network(const struct api_resource *r, const char *network,
                         const yyjson_val *object, const struct person_rights *rights,
                         struct status *st)
{
    const char *slash = strchr(network, '/');
    ferry_cleanup_free char *ns = slash ? ferry_strndup(network, (size_t)(slash - network)) : NULL;

    if (!slash || ferry_streq(ns, api_json_str(object, "/metadata/namespace")) ||
        rights->may_attach(rights->ctx, ns, slash + 1)) {
        return 0;
    }
    return status_forbidden(st, r, name_of(object),
                            "network \"%.200s\" is of another namespace, whose "
                            "network-attachment-definitions may not be read",
                            network);
}

static int check_networks(const struct api_resource *r, const yyjson_val *before,
                          const yyjson_val *spec, const yyjson_val *object,
                          const struct person_rights *rights, struct status *st)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(at(spec, "/networks"));

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        const char *network = api_json_str(v, "/multus/networkName");

        if (network && !is_among(at(before, "/networks"), "/multus/networkName", network) &&
            check_network(r, network, object, rights, st) < 0) {
            return -1;
        }
    }
    return 0;
}

int person_check(const struct api_resource *r, const yyjson_val *old, const yyjson_val *object,
                 const struct person_rights *rights, struct status *st)
{
    if (r->kind == API_KIND_POD) {
        return status_forbidden(st, r, name_of(object),
                                "pods are made and changed by ferry-controller alone: make a "
                                "VirtualMachine or a VirtualMachineInstance");
    }
    for (size_t i = 0; i < FERRY_COUNT(places); i++) {
        const yyjson_val *spec = places[i].spec ? at(object, places[i].spec) : NULL;
        const yyjson_val *before = places[i].spec ? at(old, places[i].spec) : NULL;

        if (r->kind != places[i].kind) {
            continue;
        }
        if (check_marks(r, places[i].metadata, old, object, st) < 0 ||
            check_paths(r, before, spec, object, rights, st) < 0) {
            return -1;
        }
        return check_networks(r, before, spec, object, rights, st);
    }
    return 0;
}

void person_keep_status(const struct api_resource *r, const yyjson_val *old, yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_val *status = at(old, "/status");

    if (r->kind != API_KIND_VMI || !yyjson_mut_is_obj(root)) {
        return;
    }
    yyjson_mut_obj_remove_key(root, "status");
    if (status) {
        yyjson_mut_obj_add_val(doc, root, "status", yyjson_val_mut_copy(doc, status));
    }
}
