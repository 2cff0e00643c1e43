#include "handler/move/look.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"
#include "handler/names.h"

/* ---- the pod ----------------------------------------------------------------------------------
 */

static bool pod_over(const struct api_pod *pod)
{
    return ferry_streq(pod->phase, "Succeeded") || ferry_streq(pod->phase, "Failed");
}

/* Name of the pod that this node has for the VMI, as far as a move tells it. */
static const char *named_pod(const struct look *l)
{
    const struct api_migration_state *m = &l->vmi->u.vmi.migration;

    if (m->present && ferry_streq(m->target_node, l->node->name)) {
        return m->target_pod;
    }
    return m->present && ferry_streq(m->source_node, l->node->name) ? m->source_pod : NULL;
}

/* Without a move: the launcher pod of the VMI, one that is not over before one that is. */
static struct api_object *any_pod(const struct look *l)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(l->node->pods);
    struct api_object *best = NULL;

    for (size_t i = 0; i < all.n; i++) {
        const struct api_pod *p = &all.items[i]->u.pod;

        if (ferry_streq(api_map_get(&p->meta.labels, LABEL_CREATED_BY), l->vmi->meta->uid) &&
            (!best || (pod_over(&best->u.pod) && !pod_over(p)))) {
            best = all.items[i];
        }
    }
    return best ? api_object_ref(best) : NULL;
}

static struct api_object *find_pod(const struct look *l)
{
    const char *name = named_pod(l);

    return ferry_str_empty(name) ? any_pod(l)
                                 : kube_informer_get(l->node->pods, l->vmi->meta->namespace_, name);
}

/* ---- looking ----------------------------------------------------------------------------------
 */

void look_refresh(struct look *l)
{
    struct ferry_error err;

    launcher_status_done(&l->status);
    l->view.status = NULL;
    if (launcher_get_status(l->socket, &l->status, &err) < 0) {
        ferry_debug("launcher does not answer", F_STR("vmi", l->vmi->meta->name), F_ERR(&err));
        l->view.reach = LAUNCHER_SILENT;
        return;
    }
    l->view.reach = LAUNCHER_UP;
    l->view.status = &l->status;
}

void look_begin(struct look *l)
{
    api_cleanup_object struct api_object *pod = find_pod(l);

    l->now_ms = ferry_now_unix_ms();
    if (!pod) {
        l->view.reach = LAUNCHER_NO_POD;
        return;
    }
    l->pod_uid = ferry_strdup(pod->meta->uid);
    l->pod_dir = ferry_asprintf("%s/%s", l->node->pods_dir, pod->meta->uid);
    l->socket = ferry_asprintf("%s/launcher.sock", l->pod_dir);
    l->view.pod_uid = l->pod_uid;
    if (pod_over(&pod->u.pod)) {
        l->view.reach = LAUNCHER_ENDED;
        l->view.pod_succeeded = ferry_streq(pod->u.pod.phase, "Succeeded");
    } else if (!ferry_streq(pod->u.pod.phase, "Running")) {
        l->view.reach = LAUNCHER_STARTING;
    } else {
        ferry_cleanup_free char *key = ferry_asprintf(
            "%s/%s", l->vmi->meta->namespace_ ? l->vmi->meta->namespace_ : "", l->vmi->meta->name);

        follow_launcher(l->node->follow, l->socket, key);
        look_refresh(l);
    }
}

void look_done(struct look *l)
{
    launcher_status_done(&l->status);
    free(l->pod_dir);
    free(l->socket);
    free(l->pod_uid);
}

int look_patch(struct look *l, struct api_patch *patch_take, struct ferry_error *err)
{
    if (!patch_take) {
        return 0;
    }
    ferry_cleanup_free char *body = api_patch_take(patch_take);
    int rc = kube_client_patch(l->node->client, kube_ref_status(l->vmi), KUBE_PATCH_JSON, body,
                               NULL, err);
    if (rc == 0) {
        free(l->memory->patched_version);
        l->memory->patched_version = ferry_strdup(l->vmi->meta->resource_version);
        l->memory->patched_ms = ferry_now_unix_ms();
    }
    /* Gone in the meantime: there is nothing left to say about it. */
    return rc == -(int)FERRY_NOT_FOUND ? 0 : rc;
}

void look_memory_follow_clock(struct look_memory *m, int64_t clock_ms)
{
    int64_t *const times[] = {&m->gone_since_ms, &m->undecided_since_ms, &m->progress_ms,
                              &m->recovered_ms,  &m->asked_ms,           &m->told_ms,
                              &m->seen_ms,       &m->patched_ms,         &m->trouble_ms};
    int64_t step = m->clock_ms ? clock_ms - m->clock_ms : 0;

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        *times[i] += *times[i] ? step : 0;
    }
    m->clock_ms = clock_ms;
}

void look_memory_done(struct look_memory *m)
{
    free(m->sync_error);
    free(m->disks_move);
    free(m->seen_move);
    free(m->disks);
    free(m->patched_version);
}
