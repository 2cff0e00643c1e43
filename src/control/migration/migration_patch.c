#include "control/migration/migration_patch.h"

#include <string.h>

#include "api/json.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_result.h"
#include "base/clock.h"
#include "base/str.h"
#include "control/migration/migration_case.h"
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

struct api_patch *migration_patch_failed(const struct api_object *vmi, enum wire_reason code,
                                         const char *reason, bool unsure, int64_t now_ms)
{
    const struct api_migration_state *s = &vmi->u.vmi.migration;
    struct api_patch *p = api_patch_new();

    test_state(p, vmi);
    api_patch_add_bool(p, "/status/migrationState/failed", true);
    api_patch_add_bool(p, "/status/migrationState/completed", true);
    if (!s->end_ms) {
        api_patch_add_time(p, "/status/migrationState/endTimestamp", now_ms);
    }
    if (vmi->meta->annotations.n == 0) {
        plan_guard(p, vmi); /* one that came meanwhile must not be overwritten */
    }
    if (ferry_str_empty(s->failure_reason)) {
        ferry_cleanup_free char *failure = wire_error_failure_write(s->uid, code);

        api_patch_add_str(p, "/status/migrationState/failureReason", reason);
        plan_set_annotation(p, vmi, ANNOTATION_FAILURE, failure);
    }
    if (unsure) {
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
    wire_cleanup_queue struct wire_queue q = {0};
    size_t position = wire_queue_read(old, &q) ? (size_t)q.position : 0;

    if (!q.reason || q.reason != w->reason) {
        return false;
    }
    if (w->position == 0 || position == 0) {
        return w->position == position && ferry_streq(q.message, w->message) &&
               ferry_streq(q.blocker, w->blocker);
    }
    return w->position == position ||
           (w->position > 4 && w->position > position / 4 && w->position < position * 4);
}

char *migration_queue_text(const struct migration_wait *w, int64_t now_ms)
{
    return wire_queue_text(&(struct wire_queue){.reason = w->reason,
                                                .message = w->message,
                                                .blocker = w->blocker,
                                                .lack = w->lack,
                                                .lack_text = w->lack_text,
                                                .position = (int64_t)w->position,
                                                .since_ms = now_ms,
                                                .check_s = (w->check_ms + 999) / 1000,
                                                .deadline_ms = w->deadline_ms});
}

char *migration_result_text(const struct api_migration *m, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = &m->state;
    struct wire_progress last;
    bool told = vmi && wire_progress_of(api_map_get(&vmi->meta.annotations, ANNOTATION_PROGRESS),
                                        m->meta.uid, &last);
    struct wire_result r = {-1, -1, -1};

    /* The hypervisor's own clock where the last figures are in; else whole seconds. */
    if (told && last.downtime_ms >= 0 && last.elapsed_ms > 0) {
        r.total_ms = last.elapsed_ms;
    } else if (s->start_ms && s->end_ms) {
        r.total_ms = s->end_ms - s->start_ms;
    }
    if (told) {
        r.downtime_ms = last.downtime_ms;
        r.transferred_bytes = last.has_figures ? last.processed_bytes : -1;
    }
    return wire_result_text(&r);
}
