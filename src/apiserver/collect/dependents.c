#include "apiserver/collect/dependents.h"

#include <string.h>

#include "api/json.h"
#include "apiserver/object/edit.h"
#include "apiserver/request/remove.h"
#include "base/log.h"
#include "base/str.h"

static const char foreground[] = "foregroundDeletion", orphan[] = "orphan";

static bool drop_finalizer(yyjson_mut_doc *doc, const void *ctx)
{
    yyjson_mut_val *list = yyjson_mut_ptr_get(yyjson_mut_doc_get_root(doc), "/metadata/finalizers");
    yyjson_mut_val *v;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(yyjson_mut_get_str(v), ctx)) {
            yyjson_mut_arr_remove(list, i);
            return true;
        }
    }
    return false;
}

static bool drop_owner(yyjson_mut_doc *doc, const void *ctx)
{
    yyjson_mut_val *list =
        yyjson_mut_ptr_get(yyjson_mut_doc_get_root(doc), "/metadata/ownerReferences");
    yyjson_mut_val *v;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(yyjson_mut_get_str(yyjson_mut_obj_get(v, "uid")), ctx)) {
            yyjson_mut_arr_remove(list, i);
            return true;
        }
    }
    return false;
}

static bool has_finalizer(const yyjson_val *object, const char *name)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)object, "/metadata/finalizers"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(yyjson_get_str(v), name)) {
            return true;
        }
    }
    return false;
}

bool dependents_hold(const struct entry *e)
{
    if (!entry_is_ending(e)) {
        return false;
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    const yyjson_val *root = yyjson_doc_get_root(doc);

    return has_finalizer(root, foreground) || has_finalizer(root, orphan);
}

enum relation { STRANGER, SHARED, DEPENDENT, BLOCKING };

/* Whether any of the owners but `uid` is there and stays. */
static bool has_other_owner(const struct entry_list *all, yyjson_val *owners, const char *uid)
{
    size_t i, max;
    yyjson_val *v;

    yyjson_arr_foreach(owners, i, max, v)
    {
        const char *other = api_json_str(v, "/uid");
        ferry_cleanup_free char *needle = ferry_asprintf("\"uid\":\"%s\"", other ? other : "");

        for (size_t j = 0; other && !ferry_streq(other, uid) && j < all->n; j++) {
            const struct entry *e = all->items[j];

            if (!strstr(e->json, needle) || entry_is_ending(e)) {
                continue; /* most objects: not parsed */
            }
            api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
            if (ferry_streq(api_json_str(yyjson_doc_get_root(doc), "/metadata/uid"), other)) {
                return true;
            }
        }
    }
    return false;
}

static enum relation relation_of(const struct entry_list *all, const struct entry *e,
                                 const char *uid)
{
    if (!strstr(e->json, uid) || !strstr(e->json, "\"ownerReferences\"")) {
        return STRANGER;
    }
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    yyjson_val *list = yyjson_ptr_get(yyjson_doc_get_root(doc), "/metadata/ownerReferences"), *v;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, v)
    {
        if (ferry_streq(api_json_str(v, "/uid"), uid)) {
            return has_other_owner(all, list, uid)                  ? SHARED
                   : api_json_bool(v, "/blockOwnerDeletion", false) ? BLOCKING
                                                                    : DEPENDENT;
        }
    }
    return STRANGER;
}

static bool check(int rc, const struct entry *e, const struct ferry_error *err)
{
    if (rc < 0) {
        ferry_warn("cannot change what an object owns", F_STR("resource", e->resource->plural),
                   F_STR("namespace", e->ns), F_STR("name", e->name), F_ERR(err));
    }
    return rc >= 0;
}

static bool settle(struct store *store, const struct entry_list *all, const struct entry *owner)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(owner->json, owner->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *uid = api_json_str(root, "/metadata/uid");
    bool wait = has_finalizer(root, foreground), free_them = has_finalizer(root, orphan);
    size_t blocking = 0;
    struct ferry_error err;
    bool done = true;

    if (!uid || (!wait && !free_them)) {
        return true;
    }
    for (size_t i = 0; i < all->n; i++) {
        enum relation is = relation_of(all, all->items[i], uid);

        if (is == STRANGER) {
            continue;
        }
        if (free_them || is == SHARED) { /* who has another owner stays with that one */
            done &=
                check(edit_entry(store, all->items[i], drop_owner, uid, &err), all->items[i], &err);
            continue;
        }
        blocking += is == BLOCKING;
        if (!entry_is_ending(all->items[i])) {
            done &= check(remove_entry(store, all->items[i], false, &err), all->items[i], &err);
        }
    }
    /* What could not be cut loose would be taken for garbage. */
    if (done && blocking == 0) {
        done =
            check(edit_entry(store, owner, drop_finalizer, free_them ? orphan : foreground, &err),
                  owner, &err);
    }
    return done;
}

bool dependents_sweep(struct store *store)
{
    cleanup_entry_list struct entry_list all = {0};
    bool done = true;

    store_list_all(store, &all);
    for (size_t i = 0; i < all.n; i++) {
        if (dependents_hold(all.items[i])) {
            done &= settle(store, &all, all.items[i]);
        }
    }
    return done;
}
