#include "handler/move/pass.h"

#include <stdlib.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"

/* ---- the pod ----------------------------------------------------------------------------------
 */

/* Name of the pod that this node has for the VMI, as far as a move tells it. */
static const char *named_pod(const struct pass *pass)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;

    if (m->present && ferry_streq(m->target_node, pass->node->name)) {
        return m->target_pod;
    }
    return m->present && ferry_streq(m->source_node, pass->node->name) ? m->source_pod : NULL;
}

/* A name in a status may be anybody's: a pod is the VMI's when its owner is. */
static bool is_of_vmi(const struct pass *pass, const struct api_object *pod)
{
    return ferry_streq(wire_pod_vmi(&pod->u.pod), pass->vmi->meta->uid) &&
           ferry_streq(pod->u.pod.node_name, pass->node->name);
}

/* Without a move: the launcher pod of the VMI, one that is not over before one that is. */
static struct api_object *any_pod(const struct pass *pass)
{
    kube_cleanup_snapshot struct kube_snapshot all = kube_informer_list(pass->node->pods);
    struct api_object *best = NULL;

    for (size_t i = 0; i < all.n; i++) {
        const struct api_pod *p = &all.items[i]->u.pod;

        if (is_of_vmi(pass, all.items[i]) &&
            (!best || (wire_pod_is_over(&best->u.pod) && !wire_pod_is_over(p)))) {
            best = all.items[i];
        }
    }
    return best ? api_object_ref(best) : NULL;
}

static struct api_object *find_pod(const struct pass *pass)
{
    const char *name = named_pod(pass);

    if (ferry_str_empty(name)) {
        return any_pod(pass);
    }
    api_cleanup_object struct api_object *pod =
        kube_informer_get(pass->node->pods, pass->vmi->meta->namespace_, name);
    if (!pod || is_of_vmi(pass, pod)) {
        return ferry_take_ptr(pod);
    }
    ferry_warn("VMI names a pod that is not its own; the pod is left alone",
               F_STR("namespace", pass->vmi->meta->namespace_), F_STR("vmi", pass->vmi->meta->name),
               F_STR("pod", name));
    return any_pod(pass);
}

/* ---- looking ----------------------------------------------------------------------------------
 */

void pass_refresh(struct pass *pass)
{
    struct ferry_error err;

    pass->view.status = NULL;
    pass->status = (struct launcher_status){0};
    if (launcher_get_status(&pass->launcher, &pass->status, &err) < 0) {
        ferry_debug("launcher does not answer", F_STR("vmi", pass->vmi->meta->name), F_ERR(&err));
        pass->view.reach = LAUNCHER_SILENT;
        return;
    }
    pass->view.reach = LAUNCHER_UP;
    pass->view.status = &pass->status;
}

void pass_begin(struct pass *pass)
{
    api_cleanup_object struct api_object *pod = find_pod(pass);

    pass->now_ms = ferry_now_unix_ms();
    if (!pod) {
        pass->view.reach = LAUNCHER_NO_POD;
        return;
    }
    pass->pod_uid = ferry_strdup(pod->meta->uid);
    pass->pod_dir = ferry_asprintf("%s/%s", pass->node->pods_dir, pod->meta->uid);
    pass->socket = ferry_asprintf("%s/launcher.sock", pass->pod_dir);
    pass->launcher = (struct launcher_at){.socket = pass->socket, .vmi = pass->vmi->meta->uid};
    pass->view.pod_uid = pass->pod_uid;
    if (wire_pod_is_over(&pod->u.pod)) {
        pass->view.reach = LAUNCHER_ENDED;
        pass->view.pod_succeeded = wire_phase_is(pod->u.pod.phase, PHASE_SUCCEEDED);
        pass->pod_reason = ferry_strdup(pod->u.pod.end_reason);
        pass->view.pod_reason = pass->pod_reason;
    } else if (!wire_phase_is(pod->u.pod.phase, PHASE_RUNNING)) {
        pass->view.reach = LAUNCHER_STARTING;
    } else {
        ferry_cleanup_free char *key =
            ferry_asprintf("%s/%s", pass->vmi->meta->namespace_ ? pass->vmi->meta->namespace_ : "",
                           pass->vmi->meta->name);

        follow_launcher(pass->node->follow, pass->socket, key);
        pass_refresh(pass);
    }
}

void pass_done(struct pass *pass)
{
    free(pass->pod_dir);
    free(pass->socket);
    free(pass->pod_uid);
    free(pass->pod_reason);
}

int pass_patch(struct pass *pass, struct api_patch *patch_take, struct ferry_error *err)
{
    if (!patch_take) {
        return 0;
    }
    ferry_cleanup_free char *body = api_patch_take(patch_take);
    int rc = kube_client_patch(pass->node->client, kube_ref_status(pass->vmi), KUBE_PATCH_JSON,
                               body, NULL, err);
    if (rc == 0) {
        free(pass->memory->patched_version);
        pass->memory->patched_version = ferry_strdup(pass->vmi->meta->resource_version);
        pass->memory->patched_ms = ferry_now_unix_ms();
    }
    /* Gone in the meantime: there is nothing left to say about it. */
    return rc == -FERRY_NOT_FOUND ? 0 : rc;
}

void pass_memory_follow_clock(struct pass_memory *m, int64_t clock_ms)
{
    int64_t *const times[] = {&m->gone_since_ms, &m->undecided_since_ms, &m->progress_ms,
                              &m->recovered_ms,  &m->asked_ms,           &m->told_ms,
                              &m->seen_ms,       &m->patched_ms,         &m->trouble_ms};
    int64_t step = m->clock_ms ? clock_ms - m->clock_ms : 0;

    for (size_t i = 0; i < FERRY_COUNT(times); i++) {
        *times[i] += *times[i] ? step : 0;
    }
    m->clock_ms = clock_ms;
}

void pass_memory_done(struct pass_memory *m)
{
    free(m->sync_error);
    free(m->disks_move);
    free(m->ordered_move);
    free(m->seen_move);
    free(m->disks);
    free(m->patched_version);
}
