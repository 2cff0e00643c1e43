#include "apiserver/collect/dependents.h"

#include "apiserver/collect/uid_set.h"
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

/* ctx: its uid, struct ferry_span */
static bool drop_owner(yyjson_mut_doc *doc, const void *ctx)
{
    const struct ferry_span *uid = ctx;
    yyjson_mut_val *list =
        yyjson_mut_ptr_get(yyjson_mut_doc_get_root(doc), "/metadata/ownerReferences");
    yyjson_mut_val *v;
    size_t i, max;

    yyjson_mut_arr_foreach(list, i, max, v)
    {
        if (ferry_span_is(*uid, yyjson_mut_get_str(yyjson_mut_obj_get(v, "uid")))) {
            yyjson_mut_arr_remove(list, i);
            return true;
        }
    }
    return false;
}

bool dependents_hold(const struct entry *e)
{
    return e->ending && (entry_has_finalizer(e, foreground) || entry_has_finalizer(e, orphan));
}

enum relation { STRANGER, SHARED, DEPENDENT, BLOCKING };

static enum relation relation_of(const struct uid_set *staying, const struct entry *e,
                                 struct ferry_span uid)
{
    bool blocks;

    if (!entry_is_owned_by(e, uid, &blocks)) {
        return STRANGER;
    }
    for (size_t i = 0; i < e->n_owners; i++) {
        struct ferry_span other = entry_owner(e, i).uid;

        if (!ferry_span_eq(other, uid) && uid_set_has(staying, other)) {
            return SHARED;
        }
    }
    return blocks ? BLOCKING : DEPENDENT;
}

static bool check(int rc, const struct entry *e, const struct ferry_error *err)
{
    if (rc < 0) {
        ferry_warn("cannot change what an object owns", F_STR("resource", e->resource->plural),
                   F_STR("namespace", e->ns), F_STR("name", e->name), F_ERR(err));
    }
    return rc >= 0;
}

/* `staying`: the uids of those who are there and not on their way out. */
static bool settle(struct store *store, const struct entry_list *all, const struct uid_set *staying,
                   const struct entry *owner)
{
    const struct ferry_span uid = entry_uid(owner);
    bool free_them = entry_has_finalizer(owner, orphan);
    size_t blocking = 0;
    struct ferry_error err;
    bool done = true;

    if (!uid.at) {
        return true;
    }
    for (size_t i = 0; i < all->n; i++) {
        struct entry *e = all->items[i];
        enum relation is = relation_of(staying, e, uid);

        if (is == STRANGER) {
            continue;
        }
        if (free_them || is == SHARED) { /* who has another owner stays with that one */
            done &= check(edit_entry(store, e, drop_owner, &uid, &err), e, &err);
            continue;
        }
        blocking += is == BLOCKING;
        if (!e->ending) {
            done &= check(remove_entry(store, e, false, &err), e, &err);
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

static bool anybody_holds(const struct entry_list *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (dependents_hold(all->items[i])) {
            return true;
        }
    }
    return false;
}

bool dependents_sweep(struct store *store)
{
    cleanup_entry_list struct entry_list all = {0};
    cleanup_uid_set struct uid_set staying = {0};
    bool done = true;

    store_list_all(store, &all);
    if (!anybody_holds(&all)) {
        return true;
    }
    for (size_t i = 0; i < all.n; i++) {
        if (!all.items[i]->ending) {
            uid_set_add(&staying, entry_uid(all.items[i]));
        }
    }
    for (size_t i = 0; i < all.n; i++) {
        if (dependents_hold(all.items[i])) {
            done &= settle(store, &all, &staying, all.items[i]);
        }
    }
    return done;
}
