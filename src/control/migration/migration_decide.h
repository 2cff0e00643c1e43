/* What to do about one migration: an ordered list of named rules, the first that applies decides.
 * The order and the phases are KubeVirt's; the deadlines of PreparingTarget and TargetReady, and an
 * abort that is honoured there, are ours. Pure. */
#pragma once

#include "api/object.h"
#include "api/policy.h"
#include "control/migration/migration_limits.h"
#include "control/plan/clock_steps.h"
#include "control/plan/plan.h"
#include "control/pod/pod_render.h"

struct migration_settings {
    struct migration_limits limits;
    int64_t unschedulable_timeout_s, pending_timeout_s; /* of the target pod, from its creation */
    int64_t prepare_timeout_s;                          /* in PreparingTarget */
    int64_t connect_timeout_s;                          /* in TargetReady */
    int64_t abort_timeout_s; /* an abort before the start is answered within this */
    /* In Running. A source whose node is silent is given up after this; one that reports, but
     * nothing of the move, after that. */
    int64_t silent_timeout_s, stuck_timeout_s;
    int64_t finish_timeout_s; /* from the guest's arrival to the end */
    size_t keep_finished;     /* per VMI */
    struct pod_settings pod;
};
extern const struct migration_settings migration_default_settings;

struct migration_view {
    const struct api_object *migration;
    const struct api_object *vmi;               /* NULL = there is none of that name */
    const struct api_object *target_pod;        /* made for this migration, or NULL */
    const struct api_object *source_pod;        /* that has the VM, or NULL */
    const struct api_object *const *migrations; /* all of the same VMI, this one too */
    size_t n_migrations;
    struct limits_answer limits;                /* looked at in Pending and Scheduled only */
    bool source_node_gone, target_node_gone;    /* after hand-off: there is no such Node object */
    int64_t source_silent_ms, target_silent_ms; /* since when its node is not Ready; 0 = it is */
    const struct api_object *source_node;       /* or NULL */
    const struct api_object *const *nodes;      /* all, while the target pod finds none */
    size_t n_nodes;
    struct storage_view storage;
    const struct api_object *kubevirt, *namespace_; /* or NULL */
    const struct api_object *const *policies;       /* all MigrationPolicies */
    size_t n_policies;
    const struct migration_settings *settings;
    struct clock_steps clock; /* what is known of the clock */
};

void migration_decide(const struct migration_view *view, int64_t now_ms, struct plan *ret);

/* What to write when the API refused the target pod with `err`: the move waits, says so, and
 * takes only places that are left over until it is let in. */
void migration_decide_refused(const struct migration_view *view, const struct ferry_error *err,
                              int64_t now_ms, struct plan *ret);
bool migration_is_refused(const struct api_migration *m);

/* Did an earlier try go through whose answer was lost? `live` is what the API says now. */
bool migration_took_effect(const struct migration_view *live);

/* How the migration shows in the ledger of limits; `key` is lent to the row. */
struct limits_move migration_ledger_row(const struct migration_view *view, const char *key,
                                        int64_t now_ms);

/* True when nothing but the limits keeps a Pending migration from making its target pod; else
 * `*ret_why` (may be NULL) says what, as a static text. Looks at no time. */
bool migration_is_startable(const struct migration_view *view, const char **ret_why);

/* Until when an automatic move is held back because those before it failed; 0 = it is not. */
int64_t migration_backoff_until(const struct migration_view *view);
