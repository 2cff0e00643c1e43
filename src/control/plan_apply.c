#include "control/plan_apply.h"

#include "base/log.h"
#include "base/str.h"

static int patch(const struct plan_action *a, struct kube_client *client, struct ferry_error *err)
{
    struct kube_ref ref = kube_ref(a->kind, a->ns, a->name);

    if (a->op == PLAN_PATCH_STATUS && ref.resource->has_status && !ref.resource->status_shared) {
        ref.subresource = "status";
    }
    return kube_client_patch(client, ref, KUBE_PATCH_JSON, a->body, NULL, err);
}

int plan_apply(const struct plan *p, struct kube_client *client, struct kube_recorder *recorder,
               struct ferry_error *err)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct plan_action *a = &p->actions[i];
        int rc = 0;

        switch (a->op) {
        case PLAN_PATCH:
        case PLAN_PATCH_STATUS:
            rc = patch(a, client, err);
            break;
        case PLAN_CREATE:
            rc = kube_client_create(client, kube_ref(a->kind, a->ns, a->name), a->body, NULL, err);
            if (rc == -FERRY_CONFLICT) {
                /* Names follow from UIDs: it is the one of an earlier, forgotten try. */
                ferry_debug("object is there already", F_STR("name", a->name));
                return 0;
            }
            break;
        case PLAN_DELETE:
            rc = kube_client_delete(client, kube_ref(a->kind, a->ns, a->name),
                                    &(struct kube_delete_options){.uid = a->uid}, err);
            rc = rc == -FERRY_NOT_FOUND ? 0 : rc;
            break;
        case PLAN_EVENT:
            kube_record_about(
                recorder, a->kind,
                &(struct api_meta){.namespace_ = a->ns, .name = a->name, .uid = a->uid},
                a->event_type, a->event_reason, a->body);
            break;
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}
