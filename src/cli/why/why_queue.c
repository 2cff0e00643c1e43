/* Links at which a move waits before it begins, as the controller tells them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_queue.h"
#include "api/wire/wire_reason.h"
#include "base/count.h"
#include "base/str.h"
#include "cli/why/why_case.h"

static const struct {
    enum wire_reason reason;
    const char *link;
    enum why_state state;
    const char *remedy;
} queue_reasons[] = {
    {REASON_SOURCE_BUSY, "turn", WHY_WAITS, "wait for the other move, or cancel it ('ferry list')"},
    {REASON_POLICY_INVALID, "policy", WHY_BROKEN,
     "correct the policy ('ferry policy list') or the KubeVirt object"},
    {REASON_CLUSTER_LIMIT, "limits", WHY_WAITS,
     "wait, or raise parallelMigrationsPerCluster in the KubeVirt object"},
    {REASON_OUTBOUND_LIMIT, "limits", WHY_WAITS,
     "wait, or raise parallelOutboundMigrationsPerNode in the KubeVirt object"},
    {REASON_INBOUND_LIMIT, "limits", WHY_WAITS,
     "wait, move it to another node, or raise " ANNOTATION_INBOUND_LIMIT},
    {REASON_BANDWIDTH_BUDGET, "limits", WHY_WAITS,
     "wait, or raise " ANNOTATION_BANDWIDTH_BUDGET " of the KubeVirt object"},
    {REASON_BACK_OFF, "limits", WHY_WAITS,
     "earlier moves of this VM failed ('ferry list -o wide')"},
    {REASON_QUOTA, "quota", WHY_BROKEN,
     "raise the ResourceQuota of the namespace: a move needs twice"},
    {REASON_VOLUME_NOT_READY, "volumes", WHY_BROKEN, "see to the volume that is named"},
    {REASON_NEVER_SCHEDULABLE, "target-pod", WHY_BROKEN,
     "no node can ever take it: change the VM's node selector, or add a node"},
    {REASON_UNSCHEDULABLE, "target-pod", WHY_BROKEN,
     "make room on a node, or uncordon one ('ferry node list')"},
    {REASON_TARGET_POD_PENDING, "target-pod", WHY_WAITS, ""},
    {REASON_TARGET_PREPARING, "target-prepared", WHY_WAITS, ""},
    {REASON_PATH_AWAY, "path", WHY_BROKEN,
     "bring back the network between the two nodes; the move goes on by itself"},
};

static bool queue_of(const struct why_view *v, struct wire_queue *ret)
{
    return wire_queue_read(api_map_get(&v->migration->meta.annotations, ANNOTATION_QUEUE), ret);
}

char *why_lack(const struct why_view *v, enum wire_lack *ret)
{
    wire_cleanup_queue struct wire_queue q = {0};

    *ret = queue_of(v, &q) ? q.lack : WIRE_LACK_NOTHING;
    return ferry_strdup(q.lack_text);
}

/* Whether the controller says that the move waits at this link; then `l` says it, too. */
bool why_queued_at(const struct why_view *v, const char *link, struct why_link *l)
{
    wire_cleanup_queue struct wire_queue q = {0};
    bool waits = queue_of(v, &q);

    for (size_t i = 0; waits && i < FERRY_COUNT(queue_reasons); i++) {
        if (q.reason != queue_reasons[i].reason || !ferry_streq(link, queue_reasons[i].link)) {
            continue;
        }
        const char *reason = wire_reason_text(q.reason);
        const char *message = why_text_or(q.message, "no more is known");

        if (q.position > 0 && why_phase_of(v) <= PHASE_PENDING) {
            why_say(l, queue_reasons[i].state, "%s: %.200s; place %" PRId64 " in the queue", reason,
                    message, q.position);
        } else {
            why_say(l, queue_reasons[i].state, "%s: %.200s", reason, message);
        }
        why_remedy(l, "%s", queue_reasons[i].remedy);
        return true;
    }
    return false;
}

void why_link_turn(const struct why_view *v, struct why_link *l)
{
    /* Later the same word means that the source node has not begun. */
    if (why_phase_of(v) <= PHASE_PENDING) {
        why_queued_at(v, "turn", l);
    }
}

void why_link_policy(const struct why_view *v, struct why_link *l)
{
    const struct api_migration_state *s = why_state_of(v);

    if (!why_queued_at(v, "policy", l) && s && v->vmi->status) {
        const char *name = api_json_str(v->vmi->status, "/migrationState/migrationPolicyName");

        why_say(l, WHY_OK, "%s%s", name ? "policy " : "the cluster's defaults", name ? name : "");
    }
}

void why_link_limits(const struct why_view *v, struct why_link *l)
{
    why_queued_at(v, "limits", l);
}

void why_link_quota(const struct why_view *v, struct why_link *l)
{
    why_queued_at(v, "quota", l);
}

void why_link_volumes(const struct why_view *v, struct why_link *l)
{
    const struct api_machine *m = &v->vmi->machine;
    ferry_cleanup_buf struct ferry_buf names = {0};

    if (why_queued_at(v, "volumes", l) || m->n_volumes == 0) {
        return;
    }
    for (size_t i = 0; i < m->n_volumes; i++) {
        ferry_buf_printf(&names, "%s%s", i ? ", " : "", m->volumes[i].name);
    }
    why_say(l, WHY_OK, "%.200s: %s", names.data,
            ferry_streq(api_json_str(v->vmi->status, "/migrationMethod"), "BlockMigration")
                ? "what the nodes do not share is copied with the guest"
                : "shared, nothing is copied");
}
