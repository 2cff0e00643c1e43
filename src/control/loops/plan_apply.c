#include "control/loops/plan_apply.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"

static struct kube_ref ref_of(const struct plan_action *a)
{
    struct kube_ref ref = kube_ref(a->resource ? API_KIND_POD : a->kind, a->ns, a->name);

    ref.resource = a->resource ? a->resource : ref.resource;
    return ref;
}

static void note(const struct plan_writer *w, const char *uid, const char *version)
{
    if (w->pending) {
        pending_writes_note(w->pending, uid, version, ferry_now_ns());
    }
}

static int patch(const struct plan_action *a, const struct plan_writer *w, struct ferry_error *err)
{
    struct kube_ref ref = ref_of(a);
    api_cleanup_object struct api_object *now = NULL;

    if (a->op == PLAN_PATCH_STATUS && ref.resource->has_status && !ref.resource->status_shared) {
        ref.subresource = "status";
    }
    int rc =
        kube_client_patch(w->client, ref, KUBE_PATCH_JSON, a->body, a->resource ? NULL : &now, err);
    if (now) {
        note(w, now->meta->uid, now->meta->resource_version);
    }
    return rc;
}

static int evict(const struct plan_action *a, struct kube_client *client, struct ferry_error *err)
{
    struct kube_ref ref = ref_of(a);

    ref.subresource = "eviction";
    return kube_client_create(client, ref, a->body, NULL, err);
}

/* 1 = somebody else has done it. */
static int write_one(const struct plan_action *a, const struct plan_writer *w,
                     struct ferry_error *err)
{
    int rc = 0;

    switch (a->op) {
    case PLAN_PATCH:
    case PLAN_PATCH_STATUS:
        return patch(a, w, err);
    case PLAN_CREATE:
        rc = kube_client_create(w->client, ref_of(a), a->body, NULL, err);
        if (rc == -FERRY_CONFLICT) {
            /* Names follow from UIDs: it is the one of an earlier, forgotten try. */
            ferry_debug("object is there already", F_STR("name", a->name));
            return 1;
        }
        return rc;
    case PLAN_DELETE:
        rc = kube_client_delete(w->client, ref_of(a), &(struct kube_delete_options){.uid = a->uid},
                                err);
        if (rc == 0) {
            note(w, a->uid, NULL);
        }
        return rc == -FERRY_NOT_FOUND ? 0 : rc;
    case PLAN_EVICT:
        rc = evict(a, w->client, err);
        return rc == -FERRY_NOT_FOUND ? 0 : rc;
    case PLAN_EVENT:
        break;
    }
    return 0;
}

static void record(const struct plan_action *a, struct kube_recorder *recorder)
{
    kube_record_about(recorder, a->kind,
                      &(struct api_meta){.namespace_ = a->ns, .name = a->name, .uid = a->uid},
                      a->event_vmi, a->event_type, a->event_reason, a->event_code, a->body);
}

/* The event of a write that was refused, where the success would have had one. What is merely tried
 * again is not worth one. */
static void record_refusal(const struct plan *p, size_t i, int rc, const struct ferry_error *err,
                           struct kube_recorder *recorder)
{
    static const char *const pairs[][2] = {
        {"SuccessfulCreate", "FailedCreate"},
        {"SuccessfulDelete", "FailedDelete"},
        {"SuccessfulHandOver", "FailedHandOver"},
        {"SuccessfulAbortMigration", "FailedAbortMigration"},
        {"SuccessfulEvict", "FailedEvict"},
        {"SuccessfulChangeAbortion", "FailedChangeAbortion"},
    };
    bool again = rc == -FERRY_CONFLICT || rc == -FERRY_RETRY || rc == -FERRY_NOT_FOUND;

    while (!again && i < p->n && p->actions[i].op != PLAN_EVENT) {
        i++;
    }
    for (size_t k = 0; !again && i < p->n && k < FERRY_COUNT(pairs); k++) {
        if (strcmp(p->actions[i].event_reason, pairs[k][0]) == 0) {
            struct plan_action a = p->actions[i];

            a.event_reason = pairs[k][1];
            a.event_code = NULL;
            a.event_type = KUBE_EVENT_WARNING;
            a.body = (char *)(uintptr_t)err->msg;
            record(&a, recorder);
        }
    }
}

int plan_apply(const struct plan *p, const struct plan_writer *w, struct ferry_error *err)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];
        int rc = write_one(a, w, err);

        if (a->op == PLAN_EVENT) {
            record(a, w->recorder);
        }
        if (rc < 0) {
            record_refusal(p, i, rc, err, w->recorder);
        }
        if (rc != 0) {
            return rc < 0 ? rc : 0;
        }
    }
    return 0;
}

int plan_apply_each(const struct plan *p, const struct plan_writer *w, struct ferry_error *err)
{
    int worst = 0, last = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];

        if (a->op == PLAN_EVENT) {
            if (last == 0) {
                record(a, w->recorder);
            }
            continue;
        }
        last = write_one(a, w, err);
        if (last < 0) {
            record_refusal(p, i, last, err, w->recorder);
            worst = last;
        }
    }
    return worst;
}
