#include "apiserver/collect/binder.h"

#include "api/claim.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
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
             ANNOTATION_BIND_COMPLETED, "yes");
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
    api_cleanup_doc yyjson_doc *class = entry_doc(e);

    return class && !*text_at(claim, "/spec/volumeName") &&
           ferry_streq(text_at(yyjson_doc_get_root(class), "/volumeBindingMode"),
                       "WaitForFirstConsumer");
}

static bool bind(struct store *store, const struct entry *claim_entry)
{
    struct ferry_span phase = entry_field(claim_entry, "status.phase");
    cleanup_entry_list struct entry_list volumes = {0};
    const struct entry *best = NULL;
    int64_t best_bytes = 0;
    bool given = false;

    if (ferry_span_is(phase, "Bound") || claim_entry->ending) {
        return true;
    }
    api_cleanup_doc yyjson_doc *claim = entry_doc(claim_entry);
    yyjson_val *root = yyjson_doc_get_root(claim);
    bool waits = waits_for_pod(store, root);
    store_list(store, api_resource_find("", "v1", "persistentvolumes"), NULL, &volumes);
    for (size_t i = 0; i < volumes.n; i++) {
        int64_t bytes;

        if (waits && !entry_field(volumes.items[i], "spec.claimRef.name").at) {
            continue; /* not kept for it by the scheduler */
        }
        api_cleanup_doc yyjson_doc *v = entry_doc(volumes.items[i]);
        if (api_claim_fits(root, yyjson_doc_get_root(v), &bytes) && (!best || bytes < best_bytes)) {
            best = volumes.items[i];
            best_bytes = bytes;
        }
    }
    if (!best) {
        return phase.at || edit(store, claim_entry, set_phase, &(struct phase_step){"", "Pending"});
    }
    /* The volume first: a claim that is bound has its volume for sure, also after a crash. */
    if (!edit(store, best, bind_volume, &(struct giving){.claim = root, .done = &given}) ||
        !given) {
        return false;
    }
    api_cleanup_doc yyjson_doc *volume = entry_doc(best);
    return edit(store, claim_entry, bind_claim, yyjson_doc_get_root(volume));
}

/* The claim is there, and no other of its name; a volume that names no uid is any such claim's. */
static bool has_claim(struct store *store, const struct entry *volume)
{
    ferry_cleanup_free char *ns = ferry_span_dup(entry_field(volume, "spec.claimRef.namespace"));
    ferry_cleanup_free char *name = ferry_span_dup(entry_field(volume, "spec.claimRef.name"));
    struct ferry_span uid = entry_field(volume, "spec.claimRef.uid");
    cleanup_entry struct entry *claim = store_get(
        store, api_resource_find("", "v1", "persistentvolumeclaims"), ns, name ? name : "");

    return claim && (!uid.at || ferry_span_eq(entry_uid(claim), uid));
}

/* A volume whose claim is gone is not given to another: its data is somebody's. */
static bool release(struct store *store, const struct entry *e)
{
    struct ferry_span phase = entry_field(e, "status.phase");

    if (!phase.at) {
        return edit(store, e, set_phase, &(struct phase_step){"", "Available"});
    }
    return !ferry_span_is(phase, "Bound") || has_claim(store, e) ||
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
