#include "cli/watch/moves.h"

#include <string.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/views/moveline.h"
#include "cli/views/outcome.h"
#include "json/doc.h"

#define MOVE_KIND "VirtualMachineInstanceMigration"

/* ---- columns ------------------------------------------------------------------------------- */

static const struct api_vmi *vm_of(const struct api_object *o,
                                   const struct listing_context *context)
{
    const struct api_object *vmi = listing_find(context->beside, context->n_beside,
                                                o->meta->namespace_, o->u.migration.vmi_name);

    return vmi ? &vmi->u.vmi : NULL;
}

static void put_text(struct ferry_buf *out, const char *text)
{
    ferry_buf_puts(out, text ? text : "");
}

static void put_phase(const struct api_object *o, const struct listing_context *context,
                      struct ferry_buf *out)
{
    const struct api_migration *m = &o->u.migration;

    switch (outcome_of(m, false, vm_of(o, context))) {
    case OUTCOME_CANCELLED:
        ferry_buf_puts(out, "Cancelled");
        break;
    case OUTCOME_GOING:
        ferry_buf_puts(out, m->meta.deleted_ms ? "Cancelling" : wire_phase_shown(m->phase));
        break;
    default:
        ferry_buf_puts(out, m->phase);
        break;
    }
}

static void put_from(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    put_text(out, outcome_from(&o->u.migration, vm_of(o, context)));
}

static void put_to(const struct api_object *o, const struct listing_context *context,
                   struct ferry_buf *out)
{
    put_text(out, outcome_to(&o->u.migration, vm_of(o, context)));
}

static void put_took(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    int64_t ms = moveline_result(&o->u.migration, vm_of(o, context)).total_ms;
    char took[PROGRESS_TEXT];

    if (ms >= 0) {
        ferry_buf_puts(out, progress_duration(ms, took));
    }
}

static void put_mode(const struct api_object *o, const struct listing_context *context,
                     struct ferry_buf *out)
{
    const struct api_migration_state *s = outcome_state(&o->u.migration, vm_of(o, context));

    put_text(out, s ? s->mode : NULL);
}

static void put_reason(const struct api_object *o, const struct listing_context *context,
                       struct ferry_buf *out)
{
    const struct api_migration_state *s = outcome_state(&o->u.migration, vm_of(o, context));

    put_text(out, s ? s->failure_reason : NULL);
}

/* ---- what is left of a cancelled move ------------------------------------------------------ */

static bool is_end(const struct api_event *e)
{
    return ferry_streq(e->reason, "FailedMigration") ||
           ferry_streq(e->reason, "SuccessfulMigration");
}

/* It tells of a cancel: the controller passed it on, or ended the move because of it. */
static bool is_cancel(const struct api_event *e)
{
    return ferry_streq(e->about_kind, MOVE_KIND) && !ferry_str_empty(e->about_uid) &&
           !ferry_str_empty(e->about_name) &&
           (ferry_streq(e->reason, "SuccessfulAbortMigration") ||
            (ferry_streq(e->reason, "FailedMigration") &&
             (e->action ? wire_reason_of(e->action) : wire_reason_of_failure(e->message)) ==
                 REASON_ABORTED));
}

static bool is_listed(const struct kube_list *moves, const char *uid)
{
    for (size_t i = 0; i < moves->n; i++) {
        if (ferry_streq(moves->items[i]->meta->uid, uid)) {
            return true;
        }
    }
    return false;
}

/* What is known of one of them; all borrowed. */
struct trace {
    const char *uid, *ns, *name, *vm, *reason;
    const struct api_object *vmi; /* whose account is about it, or NULL */
    int64_t first_ms, last_ms;
    bool moved; /* the cancel came too late */
};

static void put_time(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, int64_t ms)
{
    char when[FERRY_RFC3339_SIZE];

    yyjson_mut_obj_add_strcpy(doc, to, key, ferry_rfc3339(ms, when));
}

static void put_string(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *key, const char *value)
{
    if (value) {
        yyjson_mut_obj_add_str(doc, to, key, value);
    }
}

static void add_move(struct kube_list *moves, const struct trace *t)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *root = json_doc_object(doc);
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, root, "metadata");
    yyjson_mut_val *spec = yyjson_mut_obj_add_obj(doc, root, "spec");
    yyjson_mut_val *status = yyjson_mut_obj_add_obj(doc, root, "status");
    struct api_object *o = NULL;
    size_t len = 0;

    put_string(doc, meta, "name", t->name);
    put_string(doc, meta, "namespace", t->ns);
    put_string(doc, meta, "uid", t->uid);
    put_time(doc, meta, "creationTimestamp", t->first_ms);
    put_time(doc, meta, "deletionTimestamp", t->last_ms);
    put_string(doc, spec, "vmiName", t->vm ? t->vm : t->vmi ? t->vmi->meta->name : "");
    put_string(doc, status, "phase", wire_phase_text(t->moved ? PHASE_SUCCEEDED : PHASE_FAILED));
    yyjson_mut_val *state = yyjson_mut_obj_add_obj(doc, status, "migrationState");
    put_string(doc, state, "migrationUid", t->uid);
    put_string(doc, state, "failureReason", t->moved ? NULL : t->reason);
    ferry_cleanup_free char *json = json_doc_text(doc, 0, &len);
    yyjson_mut_doc_free(doc);
    if (api_object_parse(API_KIND_MIGRATION, json, len, &o, NULL) == 0) {
        moves->items = ferry_xrealloc(moves->items, moves->n + 1, sizeof(*moves->items));
        moves->items[moves->n++] = o;
    }
}

static const struct api_object *account_of(const char *uid, struct api_object *const *vmis,
                                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_migration_state *s = &vmis[i]->u.vmi.migration;

        if (s->present && ferry_streq(s->uid, uid)) {
            return vmis[i];
        }
    }
    return NULL;
}

static void read_events(struct trace *t, struct api_object *const *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_event *e = &events[i]->u.event;

        if (!ferry_streq(e->about_uid, t->uid)) {
            continue;
        }
        const char *vm = api_json_str(events[i]->root, "/related/name");
        t->vm = vm ? vm : t->vm;
        t->first_ms = e->first_ms < t->first_ms ? e->first_ms : t->first_ms;
        t->last_ms = e->last_ms > t->last_ms ? e->last_ms : t->last_ms;
        if (is_end(e)) {
            t->moved = ferry_streq(e->reason, "SuccessfulMigration");
            t->reason = e->message;
        }
    }
}

void moves_add_cancelled(struct kube_list *moves, struct api_object *const *vmis, size_t n_vmis,
                         struct api_object *const *events, size_t n_events)
{
    for (size_t i = 0; i < n_events; i++) {
        const struct api_event *e = &events[i]->u.event;

        if (!is_cancel(e) || is_listed(moves, e->about_uid)) {
            continue;
        }
        struct trace t = {.uid = e->about_uid,
                          .ns = e->about_ns,
                          .name = e->about_name,
                          .vmi = account_of(e->about_uid, vmis, n_vmis),
                          .first_ms = e->first_ms,
                          .last_ms = e->last_ms};
        read_events(&t, events, n_events);
        add_move(moves, &t);
    }
    for (size_t i = 0; i < n_vmis; i++) { /* events do not live long */
        const struct api_migration_state *s = &vmis[i]->u.vmi.migration;

        if (s->present && s->abort_requested && s->completed && !is_listed(moves, s->uid)) {
            add_move(moves, &(struct trace){.uid = s->uid,
                                            .ns = vmis[i]->meta->namespace_,
                                            .name = "-", /* it is nowhere */
                                            .vmi = vmis[i],
                                            .first_ms = s->start_ms ? s->start_ms : s->end_ms,
                                            .last_ms = s->end_ms,
                                            .moved = !s->failed});
        }
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

static int gather(struct session *s, const char *ns, struct kube_list *list,
                  struct kube_list *beside, struct ferry_error *err)
{
    int rc = kube_client_list(s->client, kube_ref(API_KIND_VMI, ns, NULL), NULL, beside, err);

    listing_sort_by_age(list);
    return rc == -FERRY_DENIED ? 0 : rc; /* they add where a move goes */
}

static int recall(struct session *s, const char *ns, struct kube_list *list,
                  const struct kube_list *beside, struct ferry_error *err)
{
    struct kube_ref ref = {.resource = api_resource_find("", "v1", "events"), .ns = ns};
    const struct kube_list_options about = {.field_selector = "involvedObject.kind=" MOVE_KIND};
    kube_cleanup_list struct kube_list events = {0};
    int rc = kube_client_list(s->client, ref, &about, &events, err);

    if (rc < 0 && rc != -FERRY_DENIED) {
        return rc;
    }
    moves_add_cancelled(list, beside->items, beside->n, events.items, events.n);
    listing_sort_by_age(list);
    return 0;
}

static const struct listing_column columns[] = {
    LISTING_NAME,
    {"VM", .pointer = "/spec/vmiName"},
    {"PHASE", put_phase},
    {"FROM", put_from},
    {"TO", put_to},
    {"AGE", listing_put_age},
    {"TOOK", put_took, .wide = true},
    {"MODE", put_mode, .wide = true},
    {"REASON", put_reason, .wide = true},
    {0},
};

const struct listing moves_listing = {
    .name = "ferry list",
    .summary = "Lists moves, the oldest first, also those that were cancelled lately.",
    .kind = API_KIND_MIGRATION,
    .namespaced = true,
    .columns = columns,
    .what = "moves",
    .advice = "'ferry migrate VM' starts one",
    .gather = gather,
    .recall = recall,
};
