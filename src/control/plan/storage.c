#include "control/plan/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "json/doc.h"

#define RWX "ReadWriteMany"

const char *storage_claim_name(const struct api_vmi_volume *v)
{
    return v->source == API_VOLUME_CLAIM || v->source == API_VOLUME_DATA_VOLUME ? v->claim : NULL;
}

static const struct api_object *named(const struct api_object *const *list, size_t n,
                                      const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (ferry_streq(list[i]->meta->name, name)) {
            return list[i];
        }
    }
    return NULL;
}

const struct api_claim *storage_claim(const struct storage_view *s, const char *name)
{
    const struct api_object *o = named(s->claims, s->n_claims, name);

    return o ? &o->u.claim : NULL;
}

bool storage_claim_is_block(const struct api_claim *c)
{
    return ferry_streq(c->volume_mode, "Block");
}

static const struct api_strings *modes_of(const struct api_claim *c)
{
    return c->bound_access_modes.n > 0 ? &c->bound_access_modes : &c->access_modes;
}

bool storage_claim_is_shared(const struct api_claim *c)
{
    return api_strings_have(modes_of(c), RWX);
}

int64_t storage_claim_bytes(const struct api_claim *c)
{
    return c->capacity_bytes ? c->capacity_bytes : c->request_bytes;
}

bool storage_claim_waits_for_pod(const struct storage_view *s, const struct api_claim *c)
{
    const struct api_object *class = named(s->classes, s->n_classes, c->storage_class);

    return class && ferry_streq(class->u.storage_class.binding_mode, "WaitForFirstConsumer");
}

/* ---- what the status says --------------------------------------------------------------------
 */

static void put_bytes(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, int64_t bytes)
{
    if (bytes > 0) {
        char text[32];

        snprintf(text, sizeof(text), "%" PRId64, bytes);
        yyjson_mut_obj_add_strcpy(doc, yyjson_mut_obj_add_obj(doc, to, key), "storage", text);
    }
}

static yyjson_mut_val *claim_info(yyjson_mut_doc *doc, const struct api_claim *c)
{
    yyjson_mut_val *info = yyjson_mut_obj(doc);
    yyjson_mut_val *modes = yyjson_mut_obj_add_arr(doc, info, "accessModes");
    const struct api_strings *had = modes_of(c);

    for (size_t i = 0; i < had->n; i++) {
        yyjson_mut_arr_add_strcpy(doc, modes, had->items[i]);
    }
    put_bytes(doc, info, "capacity", c->capacity_bytes);
    yyjson_mut_obj_add_strcpy(doc, info, "claimName", c->meta.name);
    put_bytes(doc, info, "requests", c->request_bytes);
    yyjson_mut_obj_add_strcpy(doc, info, "volumeMode",
                              storage_claim_is_block(c) ? "Block" : "Filesystem");
    return info;
}

char *storage_claim_info(const struct api_claim *c)
{
    yyjson_mut_doc *doc = json_doc_new();

    yyjson_mut_doc_set_root(doc, claim_info(doc, c));
    return json_doc_take(doc);
}

char *storage_volume_status(const struct api_vmi *vmi, const struct storage_view *s)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_val *old = yyjson_obj_get((yyjson_val *)vmi->status, "volumeStatus");
    yyjson_mut_val *list = yyjson_is_arr(old) ? yyjson_val_mut_copy(doc, old) : yyjson_mut_arr(doc);

    yyjson_mut_doc_set_root(doc, list);
    for (size_t i = 0; i < vmi->machine.n_volumes; i++) {
        const struct api_vmi_volume *v = &vmi->machine.volumes[i];
        const struct api_claim *c = storage_claim(s, storage_claim_name(v));

        if (c) {
            yyjson_mut_val *e = json_doc_named(doc, list, v->name);

            if (!yyjson_mut_obj_get(e, "target")) {
                yyjson_mut_obj_add_str(doc, e, "target", "");
            }
            yyjson_mut_obj_put(e, yyjson_mut_str(doc, "persistentVolumeClaimInfo"),
                               claim_info(doc, c));
        }
    }
    yyjson_mut_val *before = old ? yyjson_val_mut_copy(doc, old) : NULL;
    if (before ? yyjson_mut_equals(before, list) : yyjson_mut_arr_size(list) == 0) {
        yyjson_mut_doc_free(doc);
        return NULL;
    }
    return json_doc_take(doc);
}

const char *storage_missing_claim(const struct api_vmi *vmi, const struct storage_view *s)
{
    for (size_t i = 0; i < vmi->machine.n_volumes; i++) {
        const char *name = storage_claim_name(&vmi->machine.volumes[i]);

        if (name && !storage_claim(s, name)) {
            return name;
        }
    }
    return NULL;
}

/* ---- moves -----------------------------------------------------------------------------------
 */

static const struct api_migrated_volume *migrated(const struct api_vmi *vmi, const char *volume)
{
    for (size_t i = 0; i < vmi->n_migrated_volumes; i++) {
        if (ferry_streq(vmi->migrated_volumes[i].volume, volume)) {
            return &vmi->migrated_volumes[i];
        }
    }
    return NULL;
}

static bool class_offers_sharing(const struct storage_view *s, const struct api_claim *c)
{
    const struct api_object *o = named(s->profiles, s->n_profiles, c->storage_class);

    for (size_t i = 0; o && i < o->u.storage_profile.n_properties; i++) {
        if (api_strings_have(&o->u.storage_profile.properties[i].access_modes, RWX)) {
            return true;
        }
    }
    return false;
}

static struct storage_verdict say(enum wire_reason reason, bool final, const char *claim)
{
    return (struct storage_verdict){.reason = reason, .final = final, .claim = claim};
}

/* A volume whose content the move copies. */
static struct storage_verdict check_copied(const struct storage_view *s,
                                           const struct api_migrated_volume *m,
                                           const struct api_claim *c)
{
    int64_t had = m->source.capacity_bytes ? m->source.capacity_bytes : m->source.request_bytes;
    int64_t gets = storage_claim_bytes(c);
    bool bound = ferry_streq(c->phase, "Bound");

    if (gets > 0 && gets < had) {
        struct storage_verdict v = say(REASON_DESTINATION_TOO_SMALL, true, c->meta.name);

        snprintf(v.message, sizeof(v.message),
                 "claim %.100s has %" PRId64 " bytes, volume %.100s has %" PRId64, c->meta.name,
                 gets, m->volume, had);
        return v;
    }
    if (!bound && !storage_claim_waits_for_pod(s, c)) {
        struct storage_verdict v = say(REASON_VOLUME_NOT_READY, false, c->meta.name);

        snprintf(v.message, sizeof(v.message), "claim %.200s is not bound", c->meta.name);
        return v;
    }
    return (struct storage_verdict){0};
}

/* One that both nodes use. */
static struct storage_verdict check_shared(const struct storage_view *s, const char *volume,
                                           const struct api_claim *c)
{
    if (!storage_claim_is_shared(c)) {
        struct storage_verdict v = say(REASON_DEVICE_NOT_MIGRATABLE, true, c->meta.name);

        snprintf(v.message, sizeof(v.message), "claim %.100s of volume %.100s is not " RWX "%s",
                 c->meta.name, volume,
                 class_offers_sharing(s, c) ? ", which its storage class does offer" : "");
        return v;
    }
    if (!ferry_streq(c->phase, "Bound")) {
        struct storage_verdict v = say(REASON_VOLUME_NOT_READY, false, c->meta.name);

        snprintf(v.message, sizeof(v.message), "claim %.200s is not bound", c->meta.name);
        return v;
    }
    return (struct storage_verdict){0};
}

struct storage_verdict storage_check(const struct api_vmi *vmi, const struct storage_view *s)
{
    struct storage_verdict wait = {0};

    for (size_t i = 0; i < vmi->machine.n_volumes; i++) {
        const struct api_vmi_volume *v = &vmi->machine.volumes[i];
        const char *name = storage_claim_name(v);
        const struct api_claim *c = storage_claim(s, name);
        const struct api_migrated_volume *m = migrated(vmi, v->name);
        struct storage_verdict one = {0};

        if (!name) {
            continue;
        }
        if (!c) {
            one = say(REASON_VOLUME_NOT_READY, false, name);
            snprintf(one.message, sizeof(one.message), "there is no claim %.200s", name);
        } else {
            one = m ? check_copied(s, m, c) : check_shared(s, v->name, c);
        }
        if (one.reason && one.final) {
            return one; /* what cannot be comes before what is not yet */
        }
        wait = wait.reason ? wait : one;
    }
    return wait;
}
