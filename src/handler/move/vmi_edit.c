#include "handler/move/vmi_edit.h"

#include <yyjson.h>

#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

struct vmi_edit vmi_edit_begin(const struct api_vmi *vmi, int64_t now_ms)
{
    struct vmi_edit e = {.vmi = vmi,
                         .now_ms = now_ms,
                         .patch = api_patch_new(),
                         .conditions_present = vmi->conditions.n > 0};

    api_patch_test_str(e.patch, "/metadata/uid", vmi->meta.uid);
    api_patch_test_str(e.patch, "/metadata/resourceVersion", vmi->meta.resource_version);
    return e;
}

struct vmi_edit vmi_edit_begin_move(const struct api_vmi *vmi, int64_t now_ms)
{
    struct vmi_edit e = {.vmi = vmi, .now_ms = now_ms, .patch = api_patch_new()};

    api_patch_test_str(e.patch, "/metadata/uid", vmi->meta.uid);
    api_patch_test_str(e.patch, VMI_MOVE "migrationUid", vmi->migration.uid);
    return e;
}

struct api_patch *vmi_edit_end(struct vmi_edit *e)
{
    struct api_patch *p = ferry_take_ptr(e->patch);

    if (!e->changed) {
        api_patch_free(p);
        return NULL;
    }
    return p;
}

void vmi_edit_str(struct vmi_edit *e, const char *path, const char *old, const char *value)
{
    if (value && !ferry_streq(old, value)) {
        api_patch_add_str(e->patch, path, value);
        e->changed = true;
    }
}

void vmi_edit_bool(struct vmi_edit *e, const char *path, bool old, bool value)
{
    if (old != value) {
        api_patch_add_bool(e->patch, path, value);
        e->changed = true;
    }
}

void vmi_edit_time_once(struct vmi_edit *e, const char *path, int64_t old_ms, int64_t value_ms)
{
    if (!old_ms && value_ms) {
        api_patch_add_time(e->patch, path, value_ms);
        e->changed = true;
    }
}

void vmi_edit_raw(struct vmi_edit *e, const char *path, const char *json)
{
    api_patch_add_raw(e->patch, path, json);
    e->changed = true;
}

static void edit_map(struct vmi_edit *e, const struct api_map *map, const char *where,
                     const char *key, const char *value)
{
    const char *old = api_map_get(map, key);
    ferry_cleanup_free char *escaped = api_pointer_escape(key);
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", where, escaped);

    if (ferry_streq(old, value)) {
        return;
    }
    if (!value) {
        api_patch_remove(e->patch, path);
    } else {
        if (map->n == 0 && !api_patch_adds(e->patch, where)) {
            /* Somebody else may be adding the first one, too. */
            api_patch_test_str(e->patch, "/metadata/resourceVersion",
                               e->vmi->meta.resource_version);
            api_patch_add_raw(e->patch, where, "{}");
        }
        api_patch_add_str(e->patch, path, value);
    }
    e->changed = true;
}

void vmi_edit_label(struct vmi_edit *e, const char *key, const char *value)
{
    edit_map(e, &e->vmi->meta.labels, "/metadata/labels", key, value);
}

void vmi_edit_annotation(struct vmi_edit *e, const char *key, const char *value)
{
    edit_map(e, &e->vmi->meta.annotations, "/metadata/annotations", key, value);
}

void vmi_edit_failure(struct vmi_edit *e, enum wire_reason code)
{
    if (wire_reason_is_failure(code)) {
        ferry_cleanup_free char *value = wire_error_failure_write(e->vmi->migration.uid, code);

        vmi_edit_annotation(e, ANNOTATION_FAILURE, value);
    }
}

void vmi_edit_phase(struct vmi_edit *e, enum wire_phase phase)
{
    const yyjson_val *old =
        e->vmi->status ? yyjson_obj_get((yyjson_val *)e->vmi->status, "phaseTransitionTimestamps")
                       : NULL;
    char now[FERRY_RFC3339_SIZE];

    if (wire_phase_is(e->vmi->phase, phase)) {
        return;
    }
    ferry_cleanup_free char *entry =
        ferry_asprintf("{\"phase\":\"%s\",\"phaseTransitionTimestamp\":\"%s\"}",
                       wire_phase_text(phase), ferry_rfc3339(e->now_ms, now));
    if (!old) {
        api_patch_add_raw(e->patch, "/status/phaseTransitionTimestamps", "[]");
    }
    api_patch_add_raw(e->patch, "/status/phaseTransitionTimestamps/-", entry);
    api_patch_add_str(e->patch, "/status/phase", wire_phase_text(phase));
    e->changed = true;
}

/* Index of a condition, or the length of the list. */
static size_t condition_index(const struct api_vmi *vmi, const char *type)
{
    size_t i = 0;

    while (i < vmi->conditions.n && !ferry_streq(vmi->conditions.items[i].type, type)) {
        i++;
    }
    return i;
}

static char *condition_json(const char *type, const char *status, const char *reason,
                            const char *message, int64_t since_ms)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *c = json_doc_object(doc);
    char time[FERRY_RFC3339_SIZE];

    yyjson_mut_obj_add_str(doc, c, "type", type);
    yyjson_mut_obj_add_str(doc, c, "status", status);
    if (reason) {
        yyjson_mut_obj_add_str(doc, c, "reason", reason);
    }
    if (message) {
        yyjson_mut_obj_add_str(doc, c, "message", message);
    }
    yyjson_mut_obj_add_null(doc, c, "lastProbeTime");
    yyjson_mut_obj_add_str(doc, c, "lastTransitionTime", ferry_rfc3339(since_ms, time));
    return json_doc_take(doc);
}

void vmi_edit_condition(struct vmi_edit *e, const char *type, bool status, const char *reason,
                        const char *message)
{
    size_t i = condition_index(e->vmi, type);
    const struct api_condition *old =
        i < e->vmi->conditions.n ? &e->vmi->conditions.items[i] : NULL;
    const char *text = status ? "True" : "False";
    bool same = old && ferry_streq(old->status, text);

    if (same && ferry_streq(old->reason, reason) && ferry_streq(old->message, message)) {
        return;
    }
    int64_t since_ms = same && old->last_transition_ms ? old->last_transition_ms : e->now_ms;
    ferry_cleanup_free char *json = condition_json(type, text, reason, message, since_ms);
    if (old) {
        ferry_cleanup_free char *path = ferry_asprintf("/status/conditions/%zu", i);

        api_patch_remove(e->patch, path);
        api_patch_add_raw(e->patch, path, json);
    } else {
        if (!e->conditions_present) {
            api_patch_add_raw(e->patch, "/status/conditions", "[]");
            e->conditions_present = true;
        }
        api_patch_add_raw(e->patch, "/status/conditions/-", json);
    }
    e->changed = true;
}

void vmi_edit_drop_condition(struct vmi_edit *e, const char *type)
{
    size_t i = condition_index(e->vmi, type);

    if (i < e->vmi->conditions.n) {
        ferry_cleanup_free char *path = ferry_asprintf("/status/conditions/%zu", i);

        /* Dropped last by its callers: the indices after it change. */
        api_patch_remove(e->patch, path);
        e->changed = true;
    }
}
