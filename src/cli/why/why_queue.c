/* Links at which a move waits before it begins, as the controller tells them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/messages.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"
#include "cli/why/why_case.h"

static const struct {
    const char *reason, *link;
    enum why_state state;
    const char *remedy;
} queue_reasons[] = {
    {"SourceBusy", "turn", WHY_WAITS, "wait for the other move, or cancel it ('ferry list')"},
    {"PolicyInvalid", "policy", WHY_BROKEN,
     "correct the policy ('ferry policy list') or the KubeVirt object"},
    {"ClusterLimit", "limits", WHY_WAITS,
     "wait, or raise parallelMigrationsPerCluster in the KubeVirt object"},
    {"OutboundLimit", "limits", WHY_WAITS,
     "wait, or raise parallelOutboundMigrationsPerNode in the KubeVirt object"},
    {"InboundLimit", "limits", WHY_WAITS,
     "wait, move it to another node, or raise ferry.io/parallelInboundMigrationsPerNode"},
    {"BandwidthBudget", "limits", WHY_WAITS,
     "wait, or raise ferry.io/migrationBandwidthPerNode of the KubeVirt object"},
    {"BackOff", "limits", WHY_WAITS, "earlier moves of this VM failed ('ferry list -o wide')"},
    {"Quota", "quota", WHY_BROKEN, "raise the ResourceQuota of the namespace: a move needs twice"},
    {"VolumeNotReady", "volumes", WHY_BROKEN, "see to the volume that is named"},
    {"NeverSchedulable", "target-pod", WHY_BROKEN,
     "no node can ever take it: change the VM's node selector, or add a node"},
    {"Unschedulable", "target-pod", WHY_BROKEN,
     "make room on a node, or uncordon one ('ferry node list')"},
    {"TargetPodPending", "target-pod", WHY_WAITS, ""},
    {"TargetPreparing", "target-prepared", WHY_WAITS, ""},
    {"PathAway", "path", WHY_BROKEN,
     "bring back the network between the two nodes; the move goes on by itself"},
};

char *why_cpu_trouble(const struct why_view *v)
{
    const char *text = api_map_get(&v->migration->meta.annotations, "ferry.io/queue");
    api_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    const char *message = doc ? api_json_str(yyjson_doc_get_root(doc), "/message") : NULL;
    const char *cpu = message ? strstr(message, API_NO_NODE_WITH_CPU) : NULL;

    cpu = cpu || !message ? cpu : strstr(message, API_NO_NODE_WITH_MACHINE);

    return cpu ? ferry_strdup(cpu) : NULL;
}

/* Whether the controller says that the move waits at this link; then `l` says it, too. */
bool why_queued_at(const struct why_view *v, const char *link, struct why_link *l)
{
    const char *text = api_map_get(&v->migration->meta.annotations, "ferry.io/queue");
    api_cleanup_doc yyjson_doc *doc = text ? yyjson_read(text, strlen(text), 0) : NULL;
    const yyjson_val *root = yyjson_doc_get_root(doc);
    const char *reason = root ? api_json_str(root, "/reason") : NULL;

    for (size_t i = 0; reason && i < FERRY_COUNT(queue_reasons); i++) {
        if (!ferry_streq(reason, queue_reasons[i].reason) ||
            !ferry_streq(link, queue_reasons[i].link)) {
            continue;
        }
        int64_t position = api_json_int(root, "/position", 0);
        const char *message = why_text_or(api_json_str(root, "/message"), "no more is known");

        if (position > 0 && why_rank_of(v) <= WHY_PENDING) {
            why_say(l, queue_reasons[i].state, "%s: %.200s; place %" PRId64 " in the queue", reason,
                    message, position);
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
    if (why_rank_of(v) <= WHY_PENDING) {
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
