#include "control/migration/migration_patch.h"

#include <string.h>

#include "api/json.h"
#include "base/clock.h"
#include "base/str.h"
#include "control/migration/migration_case.h"
#include "control/names.h"
#include "json/doc.h"

static yyjson_val *state_of(const struct api_object *vmi)
{
    return yyjson_ptr_get((yyjson_val *)vmi->root, "/status/migrationState");
}

static void test_state(struct api_patch *p, const struct api_object *vmi)
{
    ferry_cleanup_free char *old = json_doc_val_text(state_of(vmi), 0, NULL);

    api_patch_test_raw(p, "/status/migrationState", old);
}

static void put(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, const char *value)
{
    if (value) {
        yyjson_mut_obj_add_str(doc, to, key, value);
    }
}

/* ---- the VMI ---------------------------------------------------------------------------------
 */

static char *new_state(const struct migration_view *v, const char *policy,
                       const char *configuration)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *s = json_doc_object(doc);
    api_cleanup_doc yyjson_doc *config = yyjson_read(configuration, strlen(configuration), 0);

    put(doc, s, "migrationUid", v->migration->meta->uid);
    put(doc, s, "sourceNode", v->vmi->u.vmi.node_name);
    put(doc, s, "sourcePod", v->source_pod->meta->name);
    put(doc, s, "targetNode", v->target_pod->u.pod.node_name);
    put(doc, s, "targetPod", v->target_pod->meta->name);
    put(doc, s, "migrationPolicyName", policy);
    yyjson_mut_obj_add_val(doc, s, "migrationConfiguration",
                           yyjson_val_mut_copy(doc, yyjson_doc_get_root(config)));
    return json_doc_take(doc);
}

struct api_patch *migration_patch_hand_off(const struct migration_view *v, const char *policy,
                                           const char *configuration)
{
    struct api_patch *p = api_patch_new();
    ferry_cleanup_free char *state = new_state(v, policy, configuration);

    api_patch_test_str(p, "/metadata/uid", v->vmi->meta->uid);
    api_patch_test_str(p, "/status/phase", v->vmi->u.vmi.phase);
    api_patch_test_str(p, "/status/nodeName", v->vmi->u.vmi.node_name);
    if (state_of(v->vmi)) {
        test_state(p, v->vmi);
    } else {
        plan_guard(p, v->vmi); /* JSON Patch cannot test that something is absent */
    }
    api_patch_add_raw(p, "/status/migrationState", state);
    /* Written even where it shows already: that may be an older move's, on its way out. */
    ferry_cleanup_free char *label = api_pointer_escape(LABEL_TARGET_NODE_NAME);
    ferry_cleanup_free char *path = ferry_asprintf("/metadata/labels/%s", label);
    plan_ensure_object(p, v->vmi, "/metadata/labels");
    api_patch_add_str(p, path, v->target_pod->u.pod.node_name);
    return p;
}

struct api_patch *migration_patch_failed(const struct api_object *vmi, const char *reason,
                                         bool unsure, int64_t now_ms)
{
    const struct api_migration_state *s = &vmi->u.vmi.migration;
    struct api_patch *p = api_patch_new();

    test_state(p, vmi);
    api_patch_add_bool(p, "/status/migrationState/failed", true);
    api_patch_add_bool(p, "/status/migrationState/completed", true);
    if (!s->end_ms) {
        api_patch_add_time(p, "/status/migrationState/endTimestamp", now_ms);
    }
    if (ferry_str_empty(s->failure_reason)) {
        api_patch_add_str(p, "/status/migrationState/failureReason", reason);
    }
    if (unsure) {
        if (vmi->meta->annotations.n == 0) {
            plan_guard(p, vmi); /* one that came meanwhile must not be overwritten */
        }
        plan_set_annotation(p, vmi, ANNOTATION_UNCONFIRMED, s->uid);
    }
    return p;
}

struct api_patch *migration_patch_completed(const struct api_object *vmi)
{
    struct api_patch *p = api_patch_new();

    test_state(p, vmi);
    api_patch_test_str(p, "/status/nodeName", vmi->u.vmi.node_name);
    api_patch_add_bool(p, "/status/migrationState/completed", true);
    return p;
}

struct api_patch *migration_patch_abort(const struct api_object *vmi)
{
    struct api_patch *p = api_patch_new();

    /* The UID alone: samples and times that the nodes write meanwhile must not delay an abort. */
    api_patch_test_str(p, "/status/migrationState/migrationUid", vmi->u.vmi.migration.uid);
    api_patch_add_bool(p, "/status/migrationState/abortRequested", true);
    return p;
}

/* ---- the migration ---------------------------------------------------------------------------
 */

char *migration_state_source(const struct migration_view *v)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *s = json_doc_object(doc);

    put(doc, s, "sourceNode", v->vmi ? v->vmi->u.vmi.node_name : NULL);
    put(doc, s, "sourcePod", v->source_pod ? v->source_pod->meta->name : NULL);
    return json_doc_take(doc);
}

char *migration_state_failed_early(const struct migration_view *v, const char *reason,
                                   int64_t now_ms)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *s = json_doc_object(doc);
    char when[FERRY_RFC3339_SIZE];

    put(doc, s, "migrationUid", v->migration->meta->uid);
    put(doc, s, "sourceNode", v->vmi ? v->vmi->u.vmi.node_name : NULL);
    put(doc, s, "sourcePod", v->source_pod ? v->source_pod->meta->name : NULL);
    put(doc, s, "targetNode", v->target_pod ? v->target_pod->u.pod.node_name : NULL);
    put(doc, s, "targetPod", v->target_pod ? v->target_pod->meta->name : NULL);
    put(doc, s, "endTimestamp", ferry_rfc3339(now_ms, when));
    yyjson_mut_obj_add_bool(doc, s, "completed", true);
    yyjson_mut_obj_add_bool(doc, s, "failed", true);
    put(doc, s, "failureReason", reason);
    return json_doc_take(doc);
}

bool migration_queue_text_holds(const char *old, const struct migration_wait *w)
{
    api_cleanup_doc yyjson_doc *doc = yyjson_read(old, strlen(old), 0);
    const yyjson_val *q = yyjson_doc_get_root(doc);
    size_t position = q ? (size_t)api_json_int(q, "/position", 0) : 0;

    if (!q || !ferry_streq(api_json_str(q, "/reason"), w->reason)) {
        return false;
    }
    if (w->position == 0 || position == 0) {
        return w->position == position && ferry_streq(api_json_str(q, "/message"), w->message) &&
               ferry_streq(api_json_str(q, "/blocker"), w->blocker);
    }
    return w->position == position ||
           (w->position > 4 && w->position > position / 4 && w->position < position * 4);
}

char *migration_queue_text(const struct migration_wait *w, int64_t now_ms)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *q = json_doc_object(doc);
    char since[FERRY_RFC3339_SIZE], deadline[FERRY_RFC3339_SIZE];

    put(doc, q, "reason", w->reason);
    put(doc, q, "message", w->message);
    put(doc, q, "blocker", w->blocker);
    yyjson_mut_obj_add_uint(doc, q, "position", w->position);
    put(doc, q, "since", ferry_rfc3339(now_ms, since));
    if (w->check_ms) {
        yyjson_mut_obj_add_int(doc, q, "checkSeconds", (w->check_ms + 999) / 1000);
    }
    if (w->deadline_ms) {
        put(doc, q, "deadline", ferry_rfc3339(w->deadline_ms, deadline));
    }
    return json_doc_take(doc);
}

char *migration_result_text(const struct api_migration *m, const struct api_vmi *vmi)
{
    const char *text = vmi ? api_map_get(&vmi->meta.annotations, ANNOTATION_PROGRESS) : NULL;
    api_cleanup_doc yyjson_doc *progress = text ? yyjson_read(text, strlen(text), 0) : NULL;
    const yyjson_val *last = yyjson_doc_get_root(progress);
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *r = json_doc_object(doc);
    const struct api_migration_state *s = &m->state;

    bool told = last && ferry_streq(api_json_str(last, "/uid"), m->meta.uid);
    int64_t downtime = told ? api_json_int(last, "/downtimeMs", -1) : -1;
    int64_t elapsed = downtime >= 0 ? api_json_int(last, "/elapsedMs", 0) : 0;

    /* The hypervisor's own clock where the last figures are in; else whole seconds. */
    if (elapsed > 0) {
        yyjson_mut_obj_add_int(doc, r, "totalMs", elapsed);
    } else if (s->start_ms && s->end_ms) {
        yyjson_mut_obj_add_int(doc, r, "totalMs", s->end_ms - s->start_ms);
    }
    if (told) {
        int64_t bytes = api_json_int(last, "/processedBytes", -1);

        if (downtime >= 0) {
            yyjson_mut_obj_add_int(doc, r, "downtimeMs", downtime);
        }
        if (bytes >= 0) {
            yyjson_mut_obj_add_int(doc, r, "transferredBytes", bytes);
        }
    }
    return json_doc_take(doc);
}
