#include "pods/pod_status.h"

#include <stdbool.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/str.h"
#include "json/doc.h"

struct draft {
    yyjson_mut_doc *doc;
    const yyjson_val *old; /* the present status, or NULL */
    struct api_patch *patch;
    int64_t now_ms;
    bool changed;
};

static yyjson_val *old_field(const struct draft *d, const char *name)
{
    return d->old ? yyjson_obj_get((yyjson_val *)d->old, name) : NULL;
}

static void set_str(struct draft *d, yyjson_mut_val *obj, const char *key, const char *value)
{
    if (value) {
        yyjson_mut_obj_add_strcpy(d->doc, obj, key, value);
    }
}

static void set_time(struct draft *d, yyjson_mut_val *obj, const char *key, int64_t ms)
{
    char buf[FERRY_RFC3339_SIZE];

    if (ms) {
        set_str(d, obj, key, ferry_rfc3339(ms, buf));
    }
}

/* Replaces a field of the status when it differs. */
static void put(struct draft *d, const char *name, yyjson_mut_val *value)
{
    yyjson_val *old = old_field(d, name);
    yyjson_mut_val *copy = old ? yyjson_val_mut_copy(d->doc, old) : NULL;

    if (copy && yyjson_mut_equals(copy, value)) {
        return;
    }
    ferry_cleanup_free char *path = ferry_asprintf("/status/%s", name);
    ferry_cleanup_free char *json = json_doc_mut_text(value, 0, NULL);
    api_patch_add_raw(d->patch, path, json);
    d->changed = true;
}

static void put_str(struct draft *d, const char *name, const char *value)
{
    if (value) {
        put(d, name, yyjson_mut_strcpy(d->doc, value));
    } else if (old_field(d, name)) {
        ferry_cleanup_free char *path = ferry_asprintf("/status/%s", name);

        api_patch_remove(d->patch, path);
        d->changed = true;
    }
}

/* ---- conditions -------------------------------------------------------------------------------
 */

static const struct api_condition *has_condition(const struct api_pod *pod, const char *type,
                                                 bool status)
{
    const struct api_condition *c = api_condition_find(&pod->conditions, type);

    return c && ferry_streq(c->status, status ? "True" : "False") ? c : NULL;
}

static yyjson_mut_val *condition(struct draft *d, const struct api_pod *pod, const char *type,
                                 bool status, const char *reason)
{
    const struct api_condition *old = has_condition(pod, type, status);
    yyjson_mut_val *c = yyjson_mut_obj(d->doc);

    set_str(d, c, "type", type);
    set_str(d, c, "status", status ? "True" : "False");
    set_str(d, c, "reason", reason);
    set_time(d, c, "lastTransitionTime", old ? old->last_transition_ms : d->now_ms);
    return c;
}

static void put_conditions(struct draft *d, const struct api_pod *pod, const struct pod_report *r)
{
    const char *why = r->phase == PHASE_SUCCEEDED ? "PodCompleted"
                      : r->phase == PHASE_FAILED  ? "PodFailed"
                                                  : "ContainersNotReady";
    const struct {
        const char *type;
        bool status;
        const char *reason;
    } ours[] = {
        {CONDITION_INITIALIZED, true, NULL},
        {CONDITION_CONTAINERS_READY, r->ready, r->ready ? NULL : why},
        {CONDITION_READY, r->ready, r->ready ? NULL : why},
    };
    yyjson_mut_val *list = yyjson_mut_arr(d->doc);
    yyjson_val *old = old_field(d, "conditions"), *c;
    size_t i, max;

    if (!api_condition_find(&pod->conditions, CONDITION_POD_SCHEDULED)) {
        yyjson_mut_arr_append(list, condition(d, pod, CONDITION_POD_SCHEDULED, true, NULL));
    }
    yyjson_arr_foreach(old, i, max, c)
    {
        const char *type = yyjson_get_str(yyjson_obj_get(c, "type"));
        bool mine = false;

        for (size_t k = 0; k < FERRY_COUNT(ours); k++) {
            mine = mine || ferry_streq(type, ours[k].type);
        }
        if (!mine) {
            yyjson_mut_arr_append(list, yyjson_val_mut_copy(d->doc, c));
        }
    }
    for (size_t k = 0; k < FERRY_COUNT(ours); k++) {
        yyjson_mut_arr_append(list,
                              condition(d, pod, ours[k].type, ours[k].status, ours[k].reason));
    }
    put(d, "conditions", list);
}

/* ---- the container ----------------------------------------------------------------------------
 */

static yyjson_mut_val *container_state(struct draft *d, const struct pod_report *r)
{
    yyjson_mut_val *state = yyjson_mut_obj(d->doc), *s = yyjson_mut_obj(d->doc);

    if (r->running) {
        set_time(d, s, "startedAt", r->started_ms);
        yyjson_mut_obj_add_val(d->doc, state, "running", s);
    } else if (r->terminated) {
        yyjson_mut_obj_add_int(d->doc, s, "exitCode", r->exit_code);
        set_str(d, s, "reason", r->end_reason);
        set_time(d, s, "startedAt", r->started_ms);
        set_time(d, s, "finishedAt", r->ended_ms);
        yyjson_mut_obj_add_val(d->doc, state, "terminated", s);
    } else {
        set_str(d, s, "reason", r->waiting_reason);
        set_str(d, s, "message", r->message);
        yyjson_mut_obj_add_val(d->doc, state, "waiting", s);
    }
    return state;
}

static void put_container(struct draft *d, const struct api_object *o, const struct pod_report *r)
{
    yyjson_mut_val *list = yyjson_mut_arr(d->doc), *c = yyjson_mut_arr_add_obj(d->doc, list);
    const char *image = api_json_str(o->root, "/spec/containers/0/image");
    ferry_cleanup_free char *id = ferry_asprintf("ferry://%s", o->meta->uid);

    set_str(d, c, "name", "compute");
    set_str(d, c, "image", image ? image : "");
    set_str(d, c, "imageID", "");
    yyjson_mut_obj_add_bool(d->doc, c, "ready", r->ready);
    yyjson_mut_obj_add_bool(d->doc, c, "started", r->running);
    yyjson_mut_obj_add_int(d->doc, c, "restartCount", 0);
    if (r->running || r->terminated) {
        set_str(d, c, "containerID", id);
    }
    yyjson_mut_obj_add_val(d->doc, c, "state", container_state(d, r));
    put(d, "containerStatuses", list);
}

static void put_addresses(struct draft *d, const char *host_ip)
{
    yyjson_mut_val *list = yyjson_mut_arr(d->doc);

    if (!host_ip) {
        return;
    }
    set_str(d, yyjson_mut_arr_add_obj(d->doc, list), "ip", host_ip);
    put_str(d, "hostIP", host_ip);
    put_str(d, "podIP", host_ip);
    put(d, "podIPs", list);
}

struct api_patch *pod_status_patch(const struct api_object *o, const struct pod_report *r,
                                   const char *host_ip, int64_t now_ms)
{
    struct draft d = {.doc = json_doc_new(),
                      .old = yyjson_obj_get((yyjson_val *)o->root, "status"),
                      .patch = api_patch_new(),
                      .now_ms = now_ms};
    char buf[FERRY_RFC3339_SIZE];

    api_patch_test_str(d.patch, "/metadata/uid", o->meta->uid);
    if (!d.old) {
        api_patch_add_raw(d.patch, "/status", "{}");
    }
    put_str(&d, "phase", wire_phase_text(r->phase));
    put_str(&d, "reason", r->reason);
    put_str(&d, "message", r->message);
    if (!old_field(&d, "startTime")) {
        put_str(&d, "startTime", ferry_rfc3339(now_ms, buf));
    }
    put_addresses(&d, host_ip);
    put_container(&d, o, r);
    put_conditions(&d, &o->u.pod, r);
    yyjson_mut_doc_free(d.doc);
    if (!d.changed) {
        api_patch_free(d.patch);
        return NULL;
    }
    return d.patch;
}
