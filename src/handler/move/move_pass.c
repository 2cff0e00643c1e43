/* What both ends of a move share in a reconcile pass: what is known of the other side, and what
 * this node could not do. */
#include "handler/move/move_pass.h"

#include <sys/stat.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_phase.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "handler/local/launcher_client.h"

enum {
    TELL_MS = 1000,
    /* An ordinary move is confirmed well within this after its guest has arrived. */
    CONFIRM_MS = 3000,
};

int move_pass_restless(struct pass *pass, struct ferry_error *err)
{
    return ferry_fail(err, FERRY_RETRY, "VMI %s does not come to rest as %s", pass->vmi->meta->name,
                      node_role_name(pass->role));
}

/* ---- what the other side is known to be -------------------------------------------------------
 */

/* GONE when the target's pod is over: no hypervisor runs there and none will; NEVER_RAN when the
 * target's launcher saw to that; ACTIVE when the guest arrived and this side still has something of
 * it; else UNKNOWN. */
static enum outcome_target target_state(struct pass *pass)
{
    const struct api_migration_state *m = &pass->vmi->u.vmi.migration;
    api_cleanup_object struct api_object *pod = NULL;

    if (m->target_domain_ready_ms) {
        return pass->now_ms - m->target_domain_ready_ms >= CONFIRM_MS ? OUTCOME_TARGET_ACTIVE
                                                                      : OUTCOME_TARGET_UNKNOWN;
    }
    if (launcher_status_active(&pass->status) || ferry_str_empty(m->target_pod)) {
        return OUTCOME_TARGET_UNKNOWN;
    }
    if (wire_move_never_ran(&pass->vmi->u.vmi)) {
        return OUTCOME_TARGET_NEVER_RAN;
    }
    int rc = kube_client_get(pass->node->client,
                             kube_ref(API_KIND_POD, pass->vmi->meta->namespace_, m->target_pod),
                             &pod, NULL);
    bool over = rc == 0 && wire_pod_is_over(&pod->u.pod) &&
                ferry_streq(wire_pod_vmi(&pod->u.pod), pass->vmi->meta->uid);
    return over || rc == -FERRY_NOT_FOUND ? OUTCOME_TARGET_GONE : OUTCOME_TARGET_UNKNOWN;
}

/* Where the source's launcher cannot know what became of the guest, it is told, with evidence. */
void pass_tell_target_state(struct pass *pass)
{
    const char *uid = pass->vmi->u.vmi.migration.uid;
    const struct launcher_migration *m =
        pass->view.reach == LAUNCHER_UP && uid
            ? launcher_status_migration(pass->view.status, uid, LAUNCHER_ROLE_SOURCE)
            : NULL;
    bool there = pass->status.domain == LAUNCHER_DOMAIN_RUNNING ||
                 pass->status.domain == LAUNCHER_DOMAIN_PAUSED;
    struct ferry_error err;

    if (!m || !there || m->phase == LAUNCHER_SUCCEEDED || !m->start_ms ||
        pass->now_ms - pass->memory->told_ms < TELL_MS) {
        return;
    }
    pass->memory->told_ms = pass->now_ms;
    enum outcome_target state = target_state(pass);
    if (state == OUTCOME_TARGET_UNKNOWN) {
        return;
    }
    ferry_warn("target handed to the source's launcher", F_STR("vmi", pass->vmi->meta->name),
               F_STR("move", uid), F_STR("state", wire_launcher_target_text(state)));
    if (launcher_target_state(&pass->launcher, uid, state, &err) < 0) {
        ferry_debug("the launcher did not take it", F_ERR(&err));
    }
    pass_refresh(pass);
}

/* What this pass could not do, for the next decision to see. */
void move_pass_trouble(struct pass *pass, struct move_trouble *t, enum move_part part,
                       const struct ferry_error *err)
{
    const char *key =
        pass->role == NODE_ROLE_SOURCE ? ANNOTATION_SOURCE_TROUBLE : ANNOTATION_TARGET_TROUBLE;

    if (!pass->memory->trouble_ms) {
        pass->memory->trouble_ms = pass->now_ms;
    }
    *t = move_trouble_of(part, err, ferry_now_unix_ms() - pass->memory->trouble_ms);
    bool news = !t->fresh && !api_map_get(&pass->vmi->meta->annotations, key);
    FERRY_LOG(news ? FERRY_LOG_WARN : FERRY_LOG_DEBUG, "a step of the move does not work",
              F_STR("vmi", pass->vmi->meta->name), F_STR("move", pass->vmi->u.vmi.migration.uid),
              F_STR("as", node_role_name(pass->role)), F_STR("reason", wire_reason_text(t->reason)),
              F_STR("class", ferry_class_name(t->cls)), F_ERR(err));
}

void move_pass_silence(struct pass *pass, struct move_trouble *t)
{
    struct ferry_error err;

    if (pass->view.reach == LAUNCHER_SILENT && !pass->vmi->u.vmi.migration.completed) {
        ferry_fail(&err, FERRY_RETRY, "the launcher does not answer");
        move_pass_trouble(pass, t, MOVE_PART_LAUNCHER, &err);
    }
}

void move_pass_settled(struct pass *pass, const struct move_trouble *t)
{
    if (!t->reason || t->for_good) {
        pass->memory->trouble_ms = 0;
    }
}

/* The uid of the pod's hypervisor, who has its sockets in this directory of it. */
int move_pass_owner(const char *dir, uid_t *ret, struct ferry_error *err)
{
    struct stat st;

    if (stat(dir, &st) < 0) {
        return ferry_fail(err, FERRY_RETRY, "the pod has no directory %s", dir);
    }
    *ret = st.st_uid;
    return 0;
}
