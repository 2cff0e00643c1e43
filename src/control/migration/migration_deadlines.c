/* How long a phase may take, and what ends it then. Before the guest can be under way the move is
 * simply given up. Afterwards nobody but the two nodes knows where the guest is, so what is written
 * asks them to stop, and the target's pod stays until its node has said that it has no guest. A
 * post-copy has no end but its own: half of the guest is on either side. */
#include <stdio.h>

#include "api/wire/wire_keys.h"
#include "api/wire/wire_mode.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_progress.h"
#include "api/wire/wire_reason.h"
#include "base/str.h"
#include "control/migration/cpu_fit.h"
#include "control/migration/migration_case.h"
#include "control/migration/migration_patch.h"
#include "control/migration/pending_reason.h"
#include "control/plan/facts.h"

/* ---- before the start ------------------------------------------------------------------------
 */

static void note_wait_of_nodes(struct migration_case *d, bool preparing, int64_t limit_s)
{
    int64_t since = migration_phase_since(d->m, wire_phase_of(d->m->phase));

    migration_wait_since(d, since,
                         &(struct migration_wait){
                             .reason = preparing ? REASON_TARGET_PREPARING : REASON_SOURCE_BUSY,
                             .message = preparing ? "the target node prepares the target"
                                                  : "the source node has not begun yet",
                             .blocker = preparing ? d->state->target_node : d->state->source_node,
                             .deadline_ms = since + limit_s * 1000});
}

bool migration_rule_not_started(struct migration_case *d)
{
    bool preparing = migration_in_phase(d, PHASE_PREPARING_TARGET);
    const struct migration_settings *s = d->view->settings;
    int64_t limit_s = preparing ? s->prepare_timeout_s : s->connect_timeout_s;

    if (!(preparing || migration_in_phase(d, PHASE_TARGET_READY)) || d->state->completed ||
        d->state->start_ms) {
        return false;
    }
    if (d->state->abort_requested && migration_past(d, d->m->meta.deleted_ms, s->abort_timeout_s)) {
        migration_fail_on_vmi(d, REASON_ABORTED, "cancelled before the source began",
                              migration_may_run_unseen(d));
        return true;
    }
    if (preparing && !ferry_str_empty(d->state->target_address)) {
        return false;
    }
    if (migration_past(d, migration_phase_since(d->m, wire_phase_of(d->m->phase)), limit_s)) {
        migration_fail_on_vmi(d, preparing ? REASON_PREPARE_TIMEOUT : REASON_CONNECT_TIMEOUT,
                              preparing ? "the target node did not become ready in time"
                                        : "the source node did not begin in time",
                              migration_may_run_unseen(d));
        return true;
    }
    if (!migration_note_trouble(d, migration_phase_since(d->m, wire_phase_of(d->m->phase)) +
                                       limit_s * 1000)) {
        note_wait_of_nodes(d, preparing, limit_s);
    }
    return true;
}

/* ---- under way -------------------------------------------------------------------------------
 */

static bool under_way(const struct migration_case *d)
{
    return migration_in_phase(d, PHASE_RUNNING) && d->state && !d->state->completed;
}

static bool has_arrived(const struct migration_case *d)
{
    return !ferry_str_empty(d->state->target_node) &&
           ferry_streq(d->vmi->node_name, d->state->target_node);
}

static bool is_post_copy(const struct migration_case *d)
{
    return wire_mode_is(d->state->mode, MODE_POST_COPY);
}

/* When the source last told how far it is. */
static int64_t last_sign_ms(const struct migration_case *d)
{
    const char *text = api_map_get(&d->vmi->meta.annotations, ANNOTATION_PROGRESS);
    int64_t began = migration_phase_since(d->m, PHASE_RUNNING);
    struct wire_progress told;

    began = d->state->start_ms > began ? d->state->start_ms : began;
    return wire_progress_of(text, d->m->meta.uid, &told) ? began + told.elapsed_ms : began;
}

/* The target has taken the guest over by its own word; what is left is its clean-up. */
bool migration_rule_arrived(struct migration_case *d)
{
    if (!under_way(d) || !has_arrived(d)) {
        return false;
    }
    int64_t since = d->state->end_ms ? d->state->end_ms : last_sign_ms(d);

    if (!migration_past(d, since, d->view->settings->finish_timeout_s)) {
        return false;
    }
    plan_patch_status(d->plan, d->view->vmi, migration_patch_completed(d->view->vmi));
    return true;
}

/* A node that does not report may well go on with the move. */
bool migration_rule_node_silent(struct migration_case *d)
{
    int64_t source = d->view->source_silent_ms, target = d->view->target_silent_ms;
    int64_t limit_s = d->view->settings->silent_timeout_s;

    if (!under_way(d) || has_arrived(d) || (!source && !target)) {
        return false;
    }
    bool ends = source && !is_post_copy(d);
    char text[MIGRATION_TEXT];

    if (ends && migration_past(d, source, limit_s)) {
        snprintf(text, sizeof(text),
                 "the source node %.200s is silent; the guest stays there, if it lives",
                 d->state->source_node);
        migration_fail_on_vmi(d, REASON_SOURCE_LOST, text, true);
        return true;
    }
    snprintf(text, sizeof(text), "the %s node does not report%s",
             source && target ? "source node and the target"
             : source         ? "source"
                              : "target",
             is_post_copy(d) ? "; a post-copy goes on until both nodes are back"
             : source        ? ""
                             : "; the source decides how the move ends");
    migration_wait_for(d, &(struct migration_wait){
                              .reason = REASON_PATH_AWAY,
                              .message = text,
                              .blocker = source ? d->state->source_node : d->state->target_node,
                              .deadline_ms = ends ? source + limit_s * 1000 : 0});
    return ends || is_post_copy(d); /* else the source has to give signs of life */
}

bool migration_rule_stuck(struct migration_case *d)
{
    if (!under_way(d) || has_arrived(d) || is_post_copy(d) ||
        !migration_past(d, last_sign_ms(d), d->view->settings->stuck_timeout_s)) {
        return false;
    }
    migration_fail_on_vmi(d, REASON_STUCK, "the source gives no sign of progress", true);
    return true;
}

/* ---- the target pod --------------------------------------------------------------------------
 */

/* Seconds from an annotation of the migration; the default when it is absent or no number. */
static int64_t timeout_s(const struct migration_case *d, const char *annotation, int64_t standard)
{
    const char *text = api_map_get(&d->m->meta.annotations, annotation);
    long long n = 0;

    return text && ferry_parse_int(text, 0, 1000000, &n, NULL) == 0 ? n : standard;
}

/* Which nodes lack what of the CPU that the guest has seen; NULL when that is not it. */
static char *cpu_trouble(const struct migration_case *d, enum wire_lack *ret)
{
    return cpu_fit_trouble(d->target, d->view->nodes, d->view->n_nodes,
                           d->vmi ? d->vmi->node_name : NULL, ret);
}

/* The scheduler counts nodes; what they lack of the CPU is worth its words. */
static char *homeless_text(const char *message, const char *cpu)
{
    message = message ? message : "";
    return cpu ? ferry_asprintf("%s; %s", message, cpu) : ferry_strdup(message);
}

/* Of a CPU that no other node has, the VM's owner has to hear. */
static void tell_unschedulable(struct migration_case *d, const char *why, const char *cpu)
{
    const struct migration_view *v = d->view;

    plan_event(d->plan, d->view->migration, KUBE_EVENT_WARNING, "migrationTargetPodUnschedulable",
               "%s", why);
    if (pending_lacks_cpu(d->target, v->nodes, v->n_nodes, d->vmi->node_name)) {
        plan_event(d->plan, v->vmi, KUBE_EVENT_WARNING, "NoSuitableNodesForHostModelMigration",
                   "%s", cpu ? cpu : "there is no other node");
    }
}

bool migration_rule_target_pod_pending(struct migration_case *d)
{
    const struct api_pod *pod = d->target;

    if (!(migration_in_phase(d, PHASE_PENDING) || migration_in_phase(d, PHASE_SCHEDULING)) ||
        !pod || pod_is_ready(pod)) {
        return false;
    }
    const struct migration_settings *s = d->view->settings;
    const struct api_condition *c = api_condition_find(&pod->conditions, CONDITION_POD_SCHEDULED);
    bool homeless = c && ferry_streq(c->status, "False");
    enum wire_lack lack = WIRE_LACK_NOTHING;
    ferry_cleanup_free char *cpu = homeless ? cpu_trouble(d, &lack) : NULL;
    ferry_cleanup_free char *why = homeless ? homeless_text(c->message, cpu) : ferry_strdup("");
    int64_t unschedulable_s =
        timeout_s(d, ANNOTATION_UNSCHEDULABLE_TIMEOUT, s->unschedulable_timeout_s);
    int64_t pending_s = timeout_s(d, ANNOTATION_PENDING_TIMEOUT, s->pending_timeout_s);

    if (homeless && migration_past(d, pod->meta.created_ms, unschedulable_s)) {
        tell_unschedulable(d, why, cpu);
        migration_delete_target_pod(d);
        migration_fail(d, REASON_UNSCHEDULABLE_TIMEOUT, "no node for the target pod: %s", why);
        return true;
    }
    if (migration_past(d, pod->meta.created_ms, pending_s)) {
        migration_delete_target_pod(d);
        migration_fail(d, REASON_PENDING_TIMEOUT, "the target pod did not start in time");
        return true;
    }
    if (!migration_in_phase(d, PHASE_SCHEDULING)) {
        return false;
    }
    int64_t limit_s = homeless && unschedulable_s < pending_s ? unschedulable_s : pending_s;
    struct migration_wait wait = {
        .reason =
            homeless ? pending_reason(c->message ? c->message : "") : REASON_TARGET_POD_PENDING,
        .message = homeless ? why : "the target pod is starting",
        .lack = lack,
        .lack_text = cpu,
        .blocker = pod->meta.name,
        .deadline_ms = pod->meta.created_ms + limit_s * 1000,
    };

    if (!homeless) {
        migration_wait_since(d, pod->meta.created_ms, &wait);
    } else if (migration_wait_for(d, &wait)) {
        tell_unschedulable(d, why, cpu);
    }
    return true;
}
