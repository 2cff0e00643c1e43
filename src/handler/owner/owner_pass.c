/* Ordinary life of a VM, as decided, carried out. */
#include "handler/owner/owner_pass.h"

#include <unistd.h>

#include "api/wire/wire_keys.h"
#include "base/channels.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/relay_client.h"
#include "handler/move/move_pass.h"
#include "handler/owner/migratable.h"
#include "handler/owner/owner_decide.h"

enum { CLEAN_AGAIN_MS = 1000 };

static int sync_guest(struct pass *pass, struct ferry_error *err)
{
    int rc = launcher_sync(&pass->launcher, pass->vmi, err);

    free(pass->memory->sync_error);
    pass->memory->sync_error = rc < 0 ? ferry_strdup(err->msg) : NULL;
    if (rc < 0) {
        kube_record(pass->node->recorder, pass->vmi, KUBE_EVENT_WARNING, "SyncFailed", "%s",
                    err->msg);
        return ferry_wrap(err, "starting VMI %s", pass->vmi->meta->name);
    }
    pass->again_ms = 1; /* the guest is up: say so at once */
    return 0;
}

static int act_as_owner(struct pass *pass, const struct owner_decision *d, struct ferry_error *err)
{
    /* It is the status's, which a refresh replaces. */
    ferry_cleanup_free char *uid = d->cancel_uid ? ferry_strdup(d->cancel_uid) : NULL;
    int rc = 0;

    switch (d->action) {
    case OWNER_NOTHING:
        break;
    case OWNER_SYNC:
        return sync_guest(pass, err);
    case OWNER_STOP:
        return launcher_stop(&pass->launcher, d->grace_s, err);
    case OWNER_CANCEL:
        ferry_warn("cancelling a move that the controller ended",
                   F_STR("vmi", pass->vmi->meta->name), F_STR("move", uid));
        pass_tell_target_state(pass);
        rc = launcher_cancel(&pass->launcher, uid, err);
        break;
    }
    /* It ended in between: that is what was wanted. */
    return rc == -FERRY_CONFLICT || rc == -FERRY_NOT_FOUND ? 0 : rc;
}

/* Nothing of an earlier move stays: neither in the relay nor, when that died in between, the files
 * that it left. A relay that is away holds up nothing else. */
static void clean_source(struct pass *pass)
{
    const char *key = pass->vmi->meta->uid;
    struct ferry_error err;

    if (relay_delete(pass->node->relay_socket, "sources", key, &err) < 0) {
        ferry_debug("the relay was not cleaned up, trying on", F_STR("key", key), F_ERR(&err));
        pass->again_ms = pass->again_ms ? pass->again_ms : CLEAN_AGAIN_MS;
        return;
    }
    ferry_cleanup_free char *dir = pass->pod_dir ? ferry_asprintf("%s/m", pass->pod_dir) : NULL;
    for (size_t i = 0; dir && i < FERRY_CHANNELS; i++) {
        ferry_cleanup_free char *path = ferry_channel_path(dir, key, ferry_channels[i]);

        unlink(path);
    }
    pass->memory->source_clean = true;
}

/* Whether this node's object says which CPU host-model is here; asked only for VMIs that need it,
 * until it does. */
static bool host_model_known(struct pass *pass)
{
    api_cleanup_object struct api_object *node = NULL;

    if (pass->memory->host_model_known || !migratable_needs_host_model(&pass->vmi->u.vmi) ||
        kube_client_get(pass->node->client, kube_ref(API_KIND_NODE, NULL, pass->node->name), &node,
                        NULL) < 0) {
        return pass->memory->host_model_known;
    }
    const struct api_map *labels = &node->meta->labels;
    for (size_t i = 0; i < labels->n && !pass->memory->host_model_known; i++) {
        pass->memory->host_model_known = ferry_str_starts(labels->items[i].key, LABEL_HOST_MODEL);
    }
    return pass->memory->host_model_known;
}

int pass_as_owner(struct pass *pass, struct ferry_error *err)
{
    struct pass_memory *m = pass->memory;
    const struct owner_input in = {.vmi = &pass->vmi->u.vmi,
                                   .launcher = pass->view,
                                   .gone_since_ms = m->gone_since_ms,
                                   .sync_error = m->sync_error,
                                   .host_model_known = host_model_known(pass),
                                   .now_ms = pass->now_ms};
    struct owner_decision d = owner_decide(&in);

    m->gone_since_ms = !d.guest_missing ? 0 : m->gone_since_ms ? m->gone_since_ms : pass->now_ms;
    pass->again_ms = d.again_ms;
    int rc = pass_patch(pass, d.patch, err);
    for (size_t i = 0; rc == 0 && i < d.news.n; i++) {
        const struct owner_event *e = &d.news.list[i];

        kube_record(pass->node->recorder, pass->vmi,
                    e->warning ? KUBE_EVENT_WARNING : KUBE_EVENT_NORMAL, e->reason, "%s", e->text);
    }
    if (rc == 0 && d.not_evictable) {
        kube_record(pass->node->recorder, pass->vmi, KUBE_EVENT_WARNING, "Migrated",
                    "EvictionStrategy is set but vmi is not migratable");
    }
    if (rc == 0 && !m->source_clean && d.action != OWNER_CANCEL) {
        clean_source(pass);
    }
    return rc < 0 ? rc : act_as_owner(pass, &d, err);
}
