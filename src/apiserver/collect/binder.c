#include "apiserver/collect/binder.h"

#include "api/claim.h"
#include "api/json.h"
#include "apiserver/object/edit.h"
#include "base/log.h"
#include "base/str.h"

static const char *text_at(const yyjson_val *v, const char *pointer)
{
    const char *s = api_json_str(v, pointer);

    return s ? s : "";
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

struct giving {
    const yyjson_val *claim;
    bool *done;
};

/* ctx: struct giving. The volume as it is now: it may be somebody's since it was chosen. */
static bool bind_volume(yyjson_mut_doc *doc, const void *ctx)
{
    const struct giving *g = ctx;
    const yyjson_val *claim = g->claim;
    api_cleanup_doc yyjson_doc *now = yyjson_mut_doc_imut_copy(doc, NULL);
    int64_t bytes;

    if (!api_claim_fits(claim, yyjson_doc_get_root(now), &bytes)) {
        return false;
    }
    *g->done = true;
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

/* What the sweep judged by may be old by the time it writes: others write phases, too. */
static bool has_phase(yyjson_mut_doc *doc, const char *phase)
{
    const char *now = yyjson_mut_get_str(yyjson_mut_doc_ptr_get(doc, "/status/phase"));

    return ferry_streq(now ? now : "", phase);
}

/* ctx: the volume */
static bool bind_claim(yyjson_mut_doc *doc, const void *ctx)
{
    if (has_phase(doc, "Bound")) {
        return false;
    }
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

struct phase_step {
    const char *from, *to;
};

/* ctx: struct phase_step */
static bool set_phase(yyjson_mut_doc *doc, const void *ctx)
{
    const struct phase_step *step = ctx;

    if (!has_phase(doc, step->from)) {
        return false;
    }
    put_text(doc, child(doc, yyjson_mut_doc_get_root(doc), "status"), "phase", step->to);
    return true;
}

static bool edit(struct store *store, const struct entry *e,
                 bool (*how)(yyjson_mut_doc *doc, const void *ctx), const void *ctx)
{
    struct ferry_error err;

    if (edit_entry(store, e, how, ctx, &err) < 0) {
        ferry_warn("cannot bind a volume", F_STR("resource", e->resource->plural),
                   F_STR("name", e->name), F_ERR(&err));
        return false;
    }
    return true;
}

/* ---- the sweep ---------------------------------------------------------------------------------
 */

/* Its class gives out volumes only where the first pod that uses them goes. */
static bool waits_for_pod(struct store *store, const yyjson_val *claim)
{
    cleanup_entry struct entry *e = store_get(store, api_resource_of_kind(API_KIND_STORAGE_CLASS),
                                              "", text_at(claim, "/spec/storageClassName"));
    api_cleanup_doc yyjson_doc *class = e ? yyjson_read(e->json, e->json_len, 0) : NULL;

    return class && !*text_at(claim, "/spec/volumeName") &&
           ferry_streq(text_at(yyjson_doc_get_root(class), "/volumeBindingMode"),
                       "WaitForFirstConsumer");
}

static bool bind(struct store *store, const struct entry *claim_entry)
{
    api_cleanup_doc yyjson_doc *claim = yyjson_read(claim_entry->json, claim_entry->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(claim);
    cleanup_entry_list struct entry_list volumes = {0};
    const struct entry *best = NULL;
    int64_t best_bytes = 0;
    bool given = false;

    if (ferry_streq(text_at(root, "/status/phase"), "Bound") ||
        api_json_str(root, "/metadata/deletionTimestamp")) {
        return true;
    }
    bool waits = waits_for_pod(store, root);
    store_list(store, api_resource_find("", "v1", "persistentvolumes"), NULL, &volumes);
    for (size_t i = 0; i < volumes.n; i++) {
        api_cleanup_doc yyjson_doc *v =
            yyjson_read(volumes.items[i]->json, volumes.items[i]->json_len, 0);
        int64_t bytes;

        if (waits && !*text_at(yyjson_doc_get_root(v), "/spec/claimRef/name")) {
            continue; /* not kept for it by the scheduler */
        }
        if (api_claim_fits(root, yyjson_doc_get_root(v), &bytes) && (!best || bytes < best_bytes)) {
            best = volumes.items[i];
            best_bytes = bytes;
        }
    }
    if (!best) {
        return *text_at(root, "/status/phase") ||
               edit(store, claim_entry, set_phase, &(struct phase_step){"", "Pending"});
    }
    /* The volume first: a claim that is bound has its volume for sure, also after a crash. */
    if (!edit(store, best, bind_volume, &(struct giving){.claim = root, .done = &given}) ||
        !given) {
        return false;
    }
    api_cleanup_doc yyjson_doc *volume = yyjson_read(best->json, best->json_len, 0);
    return edit(store, claim_entry, bind_claim, yyjson_doc_get_root(volume));
}

/* The claim is there, and no other of its name; a volume that names no uid is any such claim's. */
static bool is_claim(const struct entry *claim, const char *uid)
{
    api_cleanup_doc yyjson_doc *doc = claim ? yyjson_read(claim->json, claim->json_len, 0) : NULL;

    return claim && (!*uid || ferry_streq(text_at(yyjson_doc_get_root(doc), "/metadata/uid"), uid));
}

/* A volume whose claim is gone is not given to another: its data is somebody's. */
static bool release(struct store *store, const struct entry *e)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(e->json, e->json_len, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *phase = text_at(root, "/status/phase");

    if (!*phase) {
        return edit(store, e, set_phase, &(struct phase_step){"", "Available"});
    }
    if (!ferry_streq(phase, "Bound")) {
        return true;
    }
    cleanup_entry struct entry *claim =
        store_get(store, api_resource_find("", "v1", "persistentvolumeclaims"),
                  text_at(root, "/spec/claimRef/namespace"), text_at(root, "/spec/claimRef/name"));
    return is_claim(claim, text_at(root, "/spec/claimRef/uid")) ||
           edit(store, e, set_phase, &(struct phase_step){"Bound", "Released"});
}

bool binder_sweep(struct store *store)
{
    cleanup_entry_list struct entry_list volumes = {0}, claims = {0};
    bool done = true;

    store_list(store, api_resource_find("", "v1", "persistentvolumes"), NULL, &volumes);
    for (size_t i = 0; i < volumes.n; i++) {
        done &= release(store, volumes.items[i]);
    }
    store_list(store, api_resource_find("", "v1", "persistentvolumeclaims"), NULL, &claims);
    for (size_t i = 0; i < claims.n; i++) {
        done &= bind(store, claims.items[i]);
    }
    return done;
}
