#include "apiserver/binder.h"

#include <string.h>

#include "api/json.h"
#include "api/selector.h"
#include "apiserver/edit.h"
#include "base/log.h"
#include "base/str.h"

static const char *text_at(const yyjson_val *v, const char *pointer)
{
    const char *s = api_json_str(v, pointer);

    return s ? s : "";
}

/* ---- what fits ---------------------------------------------------------------------------------
 */

static bool has_modes(const yyjson_val *claim, const yyjson_val *volume)
{
    yyjson_val *wanted = yyjson_ptr_get((yyjson_val *)claim, "/spec/accessModes"), *w, *h;
    yyjson_val *had = yyjson_ptr_get((yyjson_val *)volume, "/spec/accessModes");
    size_t i, j, max, max_j;

    yyjson_arr_foreach(wanted, i, max, w)
    {
        bool found = false;

        yyjson_arr_foreach(had, j, max_j, h)
        {
            found = found || yyjson_equals(w, h);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Whose the volume already is, or is kept for. */
static bool may_have(const yyjson_val *claim, const yyjson_val *volume)
{
    const char *name = text_at(volume, "/spec/claimRef/name");
    const char *uid = text_at(volume, "/spec/claimRef/uid");

    if (!*name) {
        return ferry_streq(text_at(volume, "/status/phase"), "Available") ||
               !*text_at(volume, "/status/phase");
    }
    return ferry_streq(name, text_at(claim, "/metadata/name")) &&
           ferry_streq(text_at(volume, "/spec/claimRef/namespace"),
                       text_at(claim, "/metadata/namespace")) &&
           (!*uid || ferry_streq(uid, text_at(claim, "/metadata/uid")));
}

static bool matches_labels(const yyjson_val *claim, const yyjson_val *volume)
{
    yyjson_val *labels = yyjson_ptr_get((yyjson_val *)claim, "/spec/selector/matchLabels"), *key,
               *v;
    yyjson_val *had = yyjson_ptr_get((yyjson_val *)volume, "/metadata/labels");
    size_t i, max;

    yyjson_obj_foreach(labels, i, max, key, v)
    {
        if (!ferry_streq(yyjson_get_str(yyjson_obj_get(had, yyjson_get_str(key))),
                         yyjson_get_str(v))) {
            return false;
        }
    }
    return true;
}

bool binder_fits(const yyjson_val *claim, const yyjson_val *volume, int64_t *ret_bytes)
{
    yyjson_val *size = yyjson_ptr_get((yyjson_val *)volume, "/spec/capacity/storage");
    yyjson_val *asked = yyjson_ptr_get((yyjson_val *)claim, "/spec/resources/requests/storage");
    const char *chosen = text_at(claim, "/spec/volumeName");
    const char *mode = text_at(claim, "/spec/volumeMode");
    const char *its_mode = text_at(volume, "/spec/volumeMode");
    int64_t wanted = 0;

    *ret_bytes = 0;
    if (!size || api_quantity_val(size, 1, ret_bytes, NULL) < 0 ||
        (asked && api_quantity_val(asked, 1, &wanted, NULL) < 0)) {
        return false;
    }
    if (*chosen && !ferry_streq(chosen, text_at(volume, "/metadata/name"))) {
        return false;
    }
    return *ret_bytes >= wanted && has_modes(claim, volume) && may_have(claim, volume) &&
           matches_labels(claim, volume) &&
           ferry_streq(*mode ? mode : "Filesystem", *its_mode ? its_mode : "Filesystem") &&
           ferry_streq(text_at(claim, "/spec/storageClassName"),
                       text_at(volume, "/spec/storageClassName")) &&
           !api_json_str(volume, "/metadata/deletionTimestamp");
}

/* ---- writing it down ---------------------------------------------------------------------------
 */

static void put_text(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key, const char *text)
{
    yyjson_mut_obj_put(obj, yyjson_mut_strcpy(doc, key), yyjson_mut_strcpy(doc, text));
}

static yyjson_mut_val *child(yyjson_mut_doc *doc, yyjson_mut_val *obj, const char *key)
{
    yyjson_mut_val *v = yyjson_mut_obj_get(obj, key);

    if (!yyjson_mut_is_obj(v)) {
        v = yyjson_mut_obj(doc);
        yyjson_mut_obj_put(obj, yyjson_mut_strcpy(doc, key), v);
    }
    return v;
}

/* ctx: the claim */
static bool bind_volume(yyjson_mut_doc *doc, const void *ctx)
{
    const yyjson_val *claim = ctx;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *ref = child(doc, child(doc, root, "spec"), "claimRef");

    put_text(doc, ref, "apiVersion", "v1");
    put_text(doc, ref, "kind", "PersistentVolumeClaim");
    put_text(doc, ref, "namespace", text_at(claim, "/metadata/namespace"));
    put_text(doc, ref, "name", text_at(claim, "/metadata/name"));
    put_text(doc, ref, "uid", text_at(claim, "/metadata/uid"));
    put_text(doc, child(doc, root, "status"), "phase", "Bound");
    return true;
}

/* ctx: the volume */
static bool bind_claim(yyjson_mut_doc *doc, const void *ctx)
{
    const yyjson_val *volume = ctx;
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *status = child(doc, root, "status");
    yyjson_val *modes = yyjson_ptr_get((yyjson_val *)volume, "/spec/accessModes");
    yyjson_val *size = yyjson_ptr_get((yyjson_val *)volume, "/spec/capacity");

    put_text(doc, child(doc, root, "spec"), "volumeName", text_at(volume, "/metadata/name"));
    put_text(doc, child(doc, child(doc, root, "metadata"), "annotations"),
             "pv.kubernetes.io/bind-completed", "yes");
    put_text(doc, status, "phase", "Bound");
    if (modes) {
        yyjson_mut_obj_put(status, yyjson_mut_str(doc, "accessModes"),
                           yyjson_val_mut_copy(doc, modes));
    }
    yyjson_mut_obj_put(status, yyjson_mut_str(doc, "capacity"), yyjson_val_mut_copy(doc, size));
    return true;
}

/* ctx: the phase */
static bool set_phase(yyjson_mut_doc *doc, const void *ctx)
{
    put_text(doc, child(doc, yyjson_mut_doc_get_root(doc), "status"), "phase", ctx);
    return true;
}

static void edit(struct store *store, const struct entry *e,
                 bool (*how)(yyjson_mut_doc *doc, const void *ctx), const void *ctx)
{
    struct ferry_error err;

    if (edit_entry(store, e, how, ctx, &err) < 0) {
        ferry_warn("cannot bind a volume", F_STR("resource", e->resource->plural),
                   F_STR("name", e->name), F_ERR(&err));
    }
}

/* ---- the sweep ---------------------------------------------------------------------------------
 */

static void bind(struct store *store, const struct entry *claim_entry)
{
    api_cleanup_doc yyjson_doc *claim = yyjson_read(claim_entry->json, claim_entry->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(claim);
    cleanup_entry_list struct entry_list volumes = {0};
    const struct entry *best = NULL;
    int64_t best_bytes = 0;

    if (ferry_streq(text_at(root, "/status/phase"), "Bound") ||
        api_json_str(root, "/metadata/deletionTimestamp")) {
        return;
    }
    store_list(store, api_resource_find("", "v1", "persistentvolumes"), NULL, &volumes);
    for (size_t i = 0; i < volumes.n; i++) {
        api_cleanup_doc yyjson_doc *v =
            yyjson_read(volumes.items[i]->json, volumes.items[i]->json_len, 0);
        int64_t bytes;

        if (binder_fits(root, yyjson_doc_get_root(v), &bytes) && (!best || bytes < best_bytes)) {
            best = volumes.items[i];
            best_bytes = bytes;
        }
    }
    if (!best) {
        if (!*text_at(root, "/status/phase")) {
            edit(store, claim_entry, set_phase, "Pending");
        }
        return;
    }
    /* The volume first: a claim that is bound has its volume for sure, also after a crash. */
    edit(store, best, bind_volume, root);
    api_cleanup_doc yyjson_doc *volume = yyjson_read(best->json, best->json_len, 0);
    edit(store, claim_entry, bind_claim, yyjson_doc_get_root(volume));
}

/* A volume whose claim is gone is not given to another: its data is somebody's. */
static void release(struct store *store, const struct entry *e)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *phase = text_at(root, "/status/phase");

    if (!*phase) {
        edit(store, e, set_phase, "Available");
        return;
    }
    if (!ferry_streq(phase, "Bound")) {
        return;
    }
    cleanup_entry struct entry *claim =
        store_get(store, api_resource_find("", "v1", "persistentvolumeclaims"),
                  text_at(root, "/spec/claimRef/namespace"), text_at(root, "/spec/claimRef/name"));
    if (!claim || !strstr(claim->json, text_at(root, "/spec/claimRef/uid"))) {
        edit(store, e, set_phase, "Released");
    }
}

void binder_sweep(struct store *store)
{
    cleanup_entry_list struct entry_list volumes = {0}, claims = {0};

    store_list(store, api_resource_find("", "v1", "persistentvolumes"), NULL, &volumes);
    for (size_t i = 0; i < volumes.n; i++) {
        release(store, volumes.items[i]);
    }
    store_list(store, api_resource_find("", "v1", "persistentvolumeclaims"), NULL, &claims);
    for (size_t i = 0; i < claims.n; i++) {
        bind(store, claims.items[i]);
    }
}
