/* Ordinary life of a VM, as decided, carried out. */
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/local/relay_client.h"
#include "handler/move/look.h"
#include "handler/names.h"
#include "handler/owner/migratable.h"
#include "handler/owner/owner_decide.h"

enum { CLEAN_AGAIN_MS = 1000 };

static int sync_guest(struct look *l, struct ferry_error *err)
{
    int rc = launcher_sync(l->socket, l->vmi, err);

    free(l->memory->sync_error);
    l->memory->sync_error = rc < 0 ? ferry_strdup(err->msg) : NULL;
    if (rc < 0) {
        kube_record(l->node->recorder, l->vmi, KUBE_EVENT_WARNING, "SyncFailed", "%s", err->msg);
        return ferry_wrap(err, "starting VMI %s", l->vmi->meta->name);
    }
    l->again_ms = 1; /* the guest is up: say so at once */
    return 0;
}

static int act_as_owner(struct look *l, const struct owner_decision *d, struct ferry_error *err)
{
    /* It is the status's, which a refresh replaces. */
    ferry_cleanup_free char *uid = d->cancel_uid ? ferry_strdup(d->cancel_uid) : NULL;
    int rc = 0;

    switch (d->action) {
    case OWNER_NOTHING:
        break;
    case OWNER_SYNC:
        return sync_guest(l, err);
    case OWNER_STOP:
        return launcher_stop(l->socket, d->grace_s, err);
    case OWNER_CANCEL:
        ferry_warn("stopping a move that the site has given up", F_STR("vmi", l->vmi->meta->name),
                   F_STR("move", uid));
        look_tell_target_state(l);
        rc = launcher_cancel(l->socket, uid, err);
        break;
    }
    /* It ended in between: that is what was wanted. */
    return rc == -(int)FERRY_CONFLICT || rc == -(int)FERRY_NOT_FOUND ? 0 : rc;
}

/* Nothing of an earlier move stays: neither in the relay nor, when that died in between, the files
 * that it left. A relay that is away holds up nothing else. */
static void clean_source(struct look *l)
{
    static const char *const channels[] = {"", "-49152", "-49153"};
    const char *key = l->vmi->meta->uid;
    struct ferry_error err;

    if (relay_delete(l->node->relay_socket, "sources", key, &err) < 0) {
        ferry_debug("the relay was not cleaned up, trying on", F_STR("key", key), F_ERR(&err));
        l->again_ms = l->again_ms ? l->again_ms : CLEAN_AGAIN_MS;
        return;
    }
    for (size_t i = 0; l->pod_dir && i < sizeof(channels) / sizeof(channels[0]); i++) {
        ferry_cleanup_free char *path =
            ferry_asprintf("%s/m/%s%s-source.sock", l->pod_dir, key, channels[i]);

        unlink(path);
    }
    l->memory->source_clean = true;
}

/* Whether this node's object says which CPU host-model is here; asked only for VMIs that need it,
 * until it does. */
static bool host_model_known(struct look *l)
{
    api_cleanup_object struct api_object *node = NULL;

    if (l->memory->host_model_known || !migratable_needs_host_model(&l->vmi->u.vmi) ||
        kube_client_get(l->node->client, kube_ref(API_KIND_NODE, NULL, l->node->name), &node,
                        NULL) < 0) {
        return l->memory->host_model_known;
    }
    const struct api_map *labels = &node->meta->labels;
    for (size_t i = 0; i < labels->n && !l->memory->host_model_known; i++) {
        l->memory->host_model_known = ferry_str_starts(labels->items[i].key, LABEL_HOST_MODEL);
    }
    return l->memory->host_model_known;
}

int look_as_owner(struct look *l, struct ferry_error *err)
{
    struct look_memory *m = l->memory;
    const struct owner_input in = {.vmi = &l->vmi->u.vmi,
                                   .launcher = l->view,
                                   .gone_since_ms = m->gone_since_ms,
                                   .sync_error = m->sync_error,
                                   .host_model_known = host_model_known(l),
                                   .now_ms = l->now_ms};
    struct owner_decision d = owner_decide(&in);

    m->gone_since_ms = !d.guest_missing ? 0 : m->gone_since_ms ? m->gone_since_ms : l->now_ms;
    l->again_ms = d.again_ms;
    int rc = look_patch(l, d.patch, err);
    if (rc == 0 && d.not_evictable) {
        kube_record(l->node->recorder, l->vmi, KUBE_EVENT_WARNING, "Migrated",
                    "EvictionStrategy is set but vmi is not migratable");
    }
    if (rc == 0 && !m->source_clean && d.action != OWNER_CANCEL) {
        clean_source(l);
    }
    return rc < 0 ? rc : act_as_owner(l, &d, err);
}
