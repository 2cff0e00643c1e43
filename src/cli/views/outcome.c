#include "cli/views/outcome.h"

#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "cli/session/call.h"

const struct api_migration_state *outcome_state(const struct api_migration *m,
                                                const struct api_vmi *vmi)
{
    if (vmi && vmi->migration.present && ferry_streq(vmi->migration.uid, m->meta.uid)) {
        return &vmi->migration;
    }
    return m->state.present ? &m->state : NULL;
}

/* Somebody asked for it. That a transfer was aborted (abortStatus) says nothing of that: the source
 * aborts by itself what is stuck or does not converge. */
static bool was_cancelled(const struct api_migration *m, const struct api_migration_state *s)
{
    return (s && s->abort_requested) || m->meta.deleted_ms ||
           api_condition_true(&m->conditions, CONDITION_ABORT_REQUESTED);
}

enum outcome outcome_of(const struct api_migration *m, bool gone, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = outcome_state(m, vmi);

    if (wire_phase_is(m->phase, PHASE_SUCCEEDED)) {
        return OUTCOME_SUCCEEDED;
    }
    if (wire_phase_is(m->phase, PHASE_FAILED)) {
        return was_cancelled(m, s) ? OUTCOME_CANCELLED : OUTCOME_FAILED;
    }
    if (!gone) {
        return OUTCOME_GOING;
    }
    /* Removed before its last phase was seen: only a cancel does that, but the cancel may have come
     * too late. */
    if (s && s->completed && !s->failed) {
        return OUTCOME_SUCCEEDED;
    }
    return OUTCOME_CANCELLED;
}

const char *outcome_from(const struct api_migration *m, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = outcome_state(m, vmi);

    if (s && !ferry_str_empty(s->source_node)) {
        return s->source_node;
    }
    if (!ferry_str_empty(m->state.source_node)) {
        return m->state.source_node;
    }
    /* Where the VM is now says where it leaves from only while it has not left. */
    return vmi && outcome_of(m, false, vmi) == OUTCOME_GOING ? vmi->node_name : NULL;
}

const char *outcome_to(const struct api_migration *m, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = outcome_state(m, vmi);

    return s && !ferry_str_empty(s->target_node) ? s->target_node : NULL;
}

const char *outcome_reason(const struct api_migration *m, const struct api_vmi *vmi)
{
    const struct api_migration_state *s = outcome_state(m, vmi);

    if (s && !ferry_str_empty(s->failure_reason)) {
        return s->failure_reason;
    }
    if (!ferry_str_empty(m->state.failure_reason)) {
        return m->state.failure_reason;
    }
    for (size_t i = 0; i < m->conditions.n; i++) {
        if (!ferry_str_empty(m->conditions.items[i].message)) {
            return m->conditions.items[i].message;
        }
    }
    return "no reason was given";
}

int cli_outcome_code(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_SUCCEEDED:
        return FERRY_EXIT_OK;
    case OUTCOME_CANCELLED:
        return CLI_EXIT_CANCELLED;
    case OUTCOME_GOING:
    case OUTCOME_FAILED:
        break;
    }
    return FERRY_EXIT_FAILED;
}
