#include "control/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

enum { EVENT_TEXT = 1024 };

void plan_done(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->actions[i].ns);
        free(p->actions[i].name);
        free(p->actions[i].uid);
        free(p->actions[i].body);
        free(p->actions[i].event_vmi);
    }
    free(p->actions);
    *p = (struct plan){0};
}

static struct plan_action *add(struct plan *p, enum plan_op op, const struct api_object *o)
{
    p->actions = ferry_xrealloc(p->actions, p->n + 1, sizeof(*p->actions));
    struct plan_action *a = &p->actions[p->n++];

    *a = (struct plan_action){.op = op};
    if (o) {
        a->kind = o->kind;
        a->ns = ferry_strdup(o->meta->namespace_);
        a->name = ferry_strdup(o->meta->name);
        a->uid = ferry_strdup(o->meta->uid);
    }
    return a;
}

static void add_patch(struct plan *p, enum plan_op op, const struct api_object *o,
                      struct api_patch *patch)
{
    if (api_patch_empty(patch)) {
        api_patch_free(patch);
    } else {
        add(p, op, o)->body = api_patch_take(patch);
    }
}

void plan_patch(struct plan *p, const struct api_object *o, struct api_patch *patch_take)
{
    add_patch(p, PLAN_PATCH, o, patch_take);
}

void plan_patch_status(struct plan *p, const struct api_object *o, struct api_patch *patch_take)
{
    add_patch(p, PLAN_PATCH_STATUS, o, patch_take);
}

void plan_create(struct plan *p, enum api_kind kind, const char *ns, const char *name,
                 char *manifest_take)
{
    struct plan_action *a = add(p, PLAN_CREATE, NULL);

    a->kind = kind;
    a->ns = ferry_strdup(ns);
    a->name = ferry_strdup(name);
    a->body = manifest_take;
}

void plan_create_of(struct plan *p, const struct api_resource *resource, const char *ns,
                    const char *name, char *manifest_take)
{
    plan_create(p, API_KIND_NONE, ns, name, manifest_take);
    p->actions[p->n - 1].resource = resource;
}

void plan_delete(struct plan *p, const struct api_object *o)
{
    add(p, PLAN_DELETE, o);
}

void plan_evict(struct plan *p, const struct api_object *pod)
{
    struct plan_action *a = add(p, PLAN_EVICT, pod);

    a->body = ferry_asprintf("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                             "\"name\":\"%s\",\"namespace\":\"%s\"}}",
                             pod->meta->name, pod->meta->namespace_);
}

void plan_patch_status_of(struct plan *p, const struct api_resource *resource,
                          const struct api_object *o, struct api_patch *patch_take)
{
    size_t before = p->n;

    plan_patch_status(p, o, patch_take);
    if (p->n > before) {
        p->actions[p->n - 1].resource = resource;
    }
}

void plan_event(struct plan *p, const struct api_object *about, enum kube_event_type type,
                const char *reason, const char *fmt, ...)
{
    struct plan_action *a = add(p, PLAN_EVENT, about);
    char text[EVENT_TEXT];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    a->body = ferry_strdup(text);
    a->event_type = type;
    a->event_reason = reason;
    a->event_vmi = ferry_strdup(kube_record_vmi(about));
}

void plan_event_code(struct plan *p, const char *code)
{
    p->actions[p->n - 1].event_code = code;
}

void plan_again(struct plan *p, int64_t after_ms)
{
    after_ms = after_ms > 0 ? after_ms : 1;
    if (!p->again_ms || after_ms < p->again_ms) {
        p->again_ms = after_ms;
    }
}

void plan_append(struct plan *p, struct plan *more)
{
    p->actions = ferry_xrealloc(p->actions, p->n + more->n + 1, sizeof(*p->actions));
    for (size_t i = 0; i < more->n; i++) {
        p->actions[p->n++] = more->actions[i];
    }
    more->n = 0;
    p->confirm = p->confirm || more->confirm;
    if (more->again_ms) {
        plan_again(p, more->again_ms);
    }
    plan_done(more);
}

const struct plan_action *plan_find(const struct plan *p, enum plan_op op, enum api_kind kind)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->actions[i].op == op && p->actions[i].kind == kind) {
            return &p->actions[i];
        }
    }
    return NULL;
}

/* ---- pieces of patches ------------------------------------------------------------------------
 */

static yyjson_val *at(const struct api_object *o, const char *path)
{
    return yyjson_ptr_get((yyjson_val *)o->root, path);
}

void plan_guard(struct api_patch *p, const struct api_object *o)
{
    api_patch_test_str(p, "/metadata/resourceVersion", o->meta->resource_version);
}

void plan_ensure_object(struct api_patch *p, const struct api_object *o, const char *path)
{
    if (!yyjson_is_obj(at(o, path)) && !api_patch_adds(p, path)) {
        api_patch_add_raw(p, path, "{}");
    }
}

void plan_set_label(struct api_patch *p, const struct api_object *o, const char *key,
                    const char *value)
{
    if (ferry_streq(api_map_get(&o->meta->labels, key), value)) {
        return;
    }
    ferry_cleanup_free char *escaped = api_pointer_escape(key);
    ferry_cleanup_free char *path = ferry_asprintf("/metadata/labels/%s", escaped);

    plan_ensure_object(p, o, "/metadata/labels");
    api_patch_add_str(p, path, value);
}

void plan_set_annotation(struct api_patch *p, const struct api_object *o, const char *key,
                         const char *value)
{
    const char *present = api_map_get(&o->meta->annotations, key);

    if (ferry_streq(present, value)) {
        return;
    }
    ferry_cleanup_free char *escaped = api_pointer_escape(key);
    ferry_cleanup_free char *path = ferry_asprintf("/metadata/annotations/%s", escaped);

    if (!value) {
        api_patch_remove(p, path);
        return;
    }
    plan_ensure_object(p, o, "/metadata/annotations");
    api_patch_add_str(p, path, value);
}

bool plan_has_finalizer(const struct api_meta *m, const char *finalizer)
{
    for (size_t i = 0; i < m->finalizers.n; i++) {
        if (strcmp(m->finalizers.items[i], finalizer) == 0) {
            return true;
        }
    }
    return false;
}

/* The list with one left out, as JSON. */
static char *finalizers_json(const struct api_meta *m, const char *without)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *list = yyjson_mut_arr(doc);

    for (size_t i = 0; i < m->finalizers.n; i++) {
        if (!ferry_streq(m->finalizers.items[i], without)) {
            yyjson_mut_arr_add_str(doc, list, m->finalizers.items[i]);
        }
    }
    char *json = json_doc_mut_text(list, 0, NULL);
    yyjson_mut_doc_free(doc);
    return json;
}

void plan_add_finalizer(struct api_patch *p, const struct api_object *o, const char *finalizer)
{
    if (plan_has_finalizer(o->meta, finalizer)) {
        return;
    }
    if (!yyjson_is_arr(at(o, "/metadata/finalizers"))) {
        api_patch_add_raw(p, "/metadata/finalizers", "[]");
    }
    api_patch_add_str(p, "/metadata/finalizers/-", finalizer);
}

void plan_remove_finalizer(struct api_patch *p, const struct api_object *o, const char *finalizer)
{
    if (!plan_has_finalizer(o->meta, finalizer)) {
        return;
    }
    ferry_cleanup_free char *old = finalizers_json(o->meta, NULL);
    ferry_cleanup_free char *left = finalizers_json(o->meta, finalizer);

    api_patch_test_raw(p, "/metadata/finalizers", old);
    api_patch_add_raw(p, "/metadata/finalizers", left);
}

void plan_set_phases(struct api_patch *p, const struct api_object *o, enum wire_phase first,
                     enum wire_phase phase, int64_t now_ms)
{
    yyjson_val *times = at(o, "/status/phaseTransitionTimestamps"), *t;
    bool list = yyjson_is_arr(times);
    char when[FERRY_RFC3339_SIZE];
    size_t i, max;

    ferry_rfc3339(now_ms, when);
    plan_ensure_object(p, o, "/status");
    api_patch_add_str(p, "/status/phase", wire_phase_text(phase));
    for (int k = (int)first; k <= (int)phase; k++) {
        const char *text = wire_phase_text((enum wire_phase)k);
        ferry_cleanup_free char *entry =
            ferry_asprintf("{\"phase\":\"%s\",\"phaseTransitionTimestamp\":\"%s\"}", text, when);
        bool known = false;

        yyjson_arr_foreach(times, i, max, t)
        {
            known = known || ferry_streq(api_json_str(t, "/phase"), text);
        }
        if (known) {
            continue; /* the first time counts */
        }
        if (!list) {
            api_patch_add_raw(p, "/status/phaseTransitionTimestamps", "[]");
            list = true;
        }
        api_patch_add_raw(p, "/status/phaseTransitionTimestamps/-", entry);
    }
}

void plan_set_phase(struct api_patch *p, const struct api_object *o, enum wire_phase phase,
                    int64_t now_ms)
{
    plan_set_phases(p, o, phase, phase, now_ms);
}

static char *condition_json(const struct plan_condition *c, int64_t since_ms, int64_t now_ms)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    char probe[FERRY_RFC3339_SIZE], since[FERRY_RFC3339_SIZE];

    yyjson_mut_obj_add_str(doc, o, "type", c->type);
    yyjson_mut_obj_add_str(doc, o, "status", c->status);
    if (c->reason) {
        yyjson_mut_obj_add_str(doc, o, "reason", c->reason);
    }
    if (c->message) {
        yyjson_mut_obj_add_str(doc, o, "message", c->message);
    }
    yyjson_mut_obj_add_str(doc, o, "lastProbeTime", ferry_rfc3339(now_ms, probe));
    yyjson_mut_obj_add_str(doc, o, "lastTransitionTime", ferry_rfc3339(since_ms, since));
    char *json = json_doc_mut_text(o, 0, NULL);
    yyjson_mut_doc_free(doc);
    return json;
}

bool plan_set_condition(struct api_patch *p, const struct api_object *o,
                        const struct api_conditions *present, const struct plan_condition *c,
                        int64_t now_ms)
{
    const struct api_condition *old = api_condition_find(present, c->type);
    bool same_status = old && ferry_streq(old->status, c->status);

    if (same_status && ferry_streq(old->reason, c->reason) &&
        ferry_streq(old->message, c->message)) {
        return false;
    }
    ferry_cleanup_free char *json =
        condition_json(c, same_status ? old->last_transition_ms : now_ms, now_ms);

    plan_ensure_object(p, o, "/status");
    if (old) {
        ferry_cleanup_free char *path =
            ferry_asprintf("/status/conditions/%zu", (size_t)(old - present->items));

        api_patch_remove(p, path);
        api_patch_add_raw(p, path, json);
    } else if (present->n > 0 || yyjson_is_arr(at(o, "/status/conditions"))) {
        api_patch_add_raw(p, "/status/conditions/-", json);
    } else {
        ferry_cleanup_free char *list = ferry_asprintf("[%s]", json);

        api_patch_add_raw(p, "/status/conditions", list);
    }
    return true;
}

bool plan_remove_condition(struct api_patch *p, const struct api_conditions *present,
                           const char *type)
{
    const struct api_condition *old = api_condition_find(present, type);

    if (old) {
        ferry_cleanup_free char *path =
            ferry_asprintf("/status/conditions/%zu", (size_t)(old - present->items));

        api_patch_remove(p, path);
    }
    return old != NULL;
}

static const struct plan_condition *wanted(const struct plan_condition *want, size_t n,
                                           const char *type)
{
    for (size_t i = 0; i < n; i++) {
        if (ferry_streq(want[i].type, type)) {
            return &want[i];
        }
    }
    return NULL;
}

static bool same_condition(const struct api_condition *old, const struct plan_condition *c)
{
    return old ? ferry_streq(old->status, c->status) && ferry_streq(old->reason, c->reason) &&
                     ferry_streq(old->message, c->message)
               : !c->status;
}

bool plan_set_conditions(struct api_patch *p, const struct api_object *o,
                         const struct api_conditions *present, const struct plan_condition *want,
                         size_t n, int64_t now_ms)
{
    yyjson_val *list = at(o, "/status/conditions"), *item;
    ferry_cleanup_buf struct ferry_buf all = {0};
    bool changed = false;
    size_t k, max;

    yyjson_arr_foreach(list, k, max, item)
    {
        if (!wanted(want, n, api_json_str(item, "/type"))) {
            ferry_cleanup_free char *json = json_doc_val_text(item, 0, NULL);

            ferry_buf_printf(&all, "%s%s", all.len ? "," : "", json);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct api_condition *old = api_condition_find(present, want[i].type);
        bool same_status = old && ferry_streq(old->status, want[i].status);

        changed = changed || !same_condition(old, &want[i]);
        if (want[i].status) {
            ferry_cleanup_free char *json =
                condition_json(&want[i], same_status ? old->last_transition_ms : now_ms, now_ms);

            ferry_buf_printf(&all, "%s%s", all.len ? "," : "", json);
        }
    }
    if (changed) {
        ferry_cleanup_free char *json = ferry_asprintf("[%s]", all.data ? all.data : "");

        api_patch_add_raw(p, "/status/conditions", json);
    }
    return changed;
}

bool plan_set_value(struct api_patch *p, const struct api_object *o, const char *path,
                    const char *json)
{
    yyjson_val *old = at(o, path);
    api_cleanup_doc yyjson_doc *doc = json ? yyjson_read(json, strlen(json), 0) : NULL;

    if (!json ? !old : old && yyjson_equals(old, yyjson_doc_get_root(doc))) {
        return false;
    }
    if (json) {
        api_patch_add_raw(p, path, json);
    } else {
        api_patch_remove(p, path);
    }
    return true;
}
