#include "control/plan/facts.h"

#include "api/wire/wire_keys.h"
#include "api/wire/wire_move.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"
#include "kube/queue.h"

bool vmi_has_phase(const struct api_vmi *vmi, enum wire_phase phase)
{
    return wire_phase_is(vmi->phase, phase);
}

bool vmi_is_migrating(const struct api_vmi *vmi)
{
    const struct api_migration_state *s = &vmi->migration;

    return s->present && !ferry_str_empty(s->uid) && !s->completed;
}

bool vmi_awaits_target(const struct api_vmi *vmi)
{
    const struct api_migration_state *s = &vmi->migration;

    return s->present && s->failed && !ferry_str_empty(s->uid) && wire_move_is_unconfirmed(vmi) &&
           ferry_streq(api_map_get(&vmi->meta.labels, LABEL_TARGET_NODE_NAME), s->target_node) &&
           !ferry_streq(vmi->node_name, s->target_node);
}

bool pod_is_ready(const struct api_pod *pod)
{
    return !wire_pod_is_over(pod) && !pod->meta.deleted_ms &&
           wire_phase_is(pod->phase, PHASE_RUNNING) && pod->container_running &&
           !ferry_str_empty(pod->node_name);
}

int64_t node_silent_since(const struct api_node *node)
{
    const struct api_condition *ready = api_condition_find(&node->conditions, CONDITION_READY);

    return !ready || ferry_streq(ready->status, "True") ? 0
           : ready->last_transition_ms                  ? ready->last_transition_ms
                                                        : 1;
}

/* How sure it is that a pod on the VM's node has the VM. The last move says which pod it came from
 * or went to; one that has ended may be a leftover. */
static int claim_of(const struct api_vmi *vmi, const struct api_pod *pod)
{
    const struct api_migration_state *s = &vmi->migration;
    bool named =
        (ferry_streq(s->target_node, vmi->node_name) &&
         ferry_streq(s->target_pod, pod->meta.name)) ||
        (ferry_streq(s->source_node, vmi->node_name) && ferry_streq(s->source_pod, pod->meta.name));

    return s->present && named ? 2 : !wire_pod_is_over(pod);
}

const struct api_object *vmi_current_pod(const struct api_vmi *vmi,
                                         const struct api_object *const *pods, size_t n)
{
    const struct api_object *best = NULL;
    int best_claim = 0;

    for (size_t i = 0; i < n; i++) {
        const struct api_pod *pod = &pods[i]->u.pod;
        bool fits = ferry_str_empty(vmi->node_name)
                        ? !api_map_get(&pod->meta.labels, LABEL_MIGRATION_JOB_UID)
                        : ferry_streq(pod->node_name, vmi->node_name);
        int claim = fits ? claim_of(vmi, pod) : 0;

        /* Not by age alone: the clock may have been set between the two. */
        if (fits && (!best || claim > best_claim ||
                     (claim == best_claim && pod->meta.created_ms > best->meta->created_ms))) {
            best = pods[i];
            best_claim = claim;
        }
    }
    return best;
}

/* ---- migrations ------------------------------------------------------------------------------
 */

bool migration_target_created(const struct api_migration *m)
{
    return m->phase[0] && !wire_phase_is(m->phase, PHASE_PENDING);
}

bool migration_is_running(const struct api_migration *m)
{
    return migration_target_created(m) && !wire_migration_is_over(m);
}

int migration_priority(const struct api_migration *m)
{
    static const struct {
        const char *name;
        int value;
    } table[] = {{"system-critical", KUBE_PRIORITY_CRITICAL},
                 {"user-triggered", KUBE_PRIORITY_USER},
                 {"system-maintenance", KUBE_PRIORITY_MAINTENANCE}};

    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (ferry_streq(m->priority, table[i].name)) {
            return table[i].value;
        }
    }
    return KUBE_PRIORITY_NONE;
}

int64_t migration_phase_since(const struct api_migration *m, enum wire_phase phase)
{
    for (size_t i = 0; i < m->n_phase_times; i++) {
        if (wire_phase_is(m->phase_times[i].phase, phase)) {
            return m->phase_times[i].at_ms;
        }
    }
    return m->meta.created_ms;
}
