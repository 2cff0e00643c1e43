/* What the files of migration_decide() share: the case under decision, questions about it, and what
 * a rule may plan. Not for others. */
#pragma once

#include "api/wire/wire_error.h"
#include "api/wire/wire_phase.h"
#include "api/wire/wire_reason.h"
#include "control/migration/migration_decide.h"

enum { MIGRATION_TEXT = 512 };

struct migration_case {
    const struct migration_view *view;
    const struct api_migration *m;
    const struct api_vmi *vmi;               /* or NULL */
    const struct api_migration_state *state; /* the VMI's, when it is about this migration */
    const struct api_pod *target;            /* or NULL */
    int64_t now_ms;
    struct plan *plan;
};

bool migration_in_phase(const struct migration_case *d, enum wire_phase phase);
/* From the moment that the VMI names this migration, the nodes act on it. */
bool migration_handed_off(const struct migration_case *d);
/* True when `limit_s` since `since_ms` is over; else asks to look again then. */
bool migration_past(struct migration_case *d, int64_t since_ms, int64_t limit_s);

/* A patch of the status that only holds while the phase is the one that was looked at. Nobody but
 * the controller writes this status, so nothing else can have changed. */
struct api_patch *migration_status_patch(const struct migration_case *d);
/* The VMI's account of this migration, or what is known when it never got that far. */
void migration_copy_state(struct migration_case *d, struct api_patch *p, const char *failure);
bool migration_set_abort_condition(struct migration_case *d, struct api_patch *p);
/* The annotation that says why the migration waits; NULL text takes it away. */
void migration_set_queue_text(struct migration_case *d, const char *text);
/* To a later phase; those between have been passed, and get their times with it. The patch is of
 * the status, and may carry more. */
struct api_patch *migration_phase_patch(struct migration_case *d, enum wire_phase phase);
void migration_move_to(struct migration_case *d, enum wire_phase phase);
struct migration_wait {
    enum wire_reason reason;
    const char *message;
    const char *blocker; /* key of what is in the way, or NULL */
    enum wire_lack
        lack; /* what the guest has and no other node; `lack_text`: which node not what */
    const char *lack_text;
    size_t position;     /* in the queue; 0 = not a matter of the queue */
    int64_t check_ms;    /* looked at again at least this often */
    int64_t deadline_ms; /* when it stops waiting; 0 = never. One of the two is always told */
};
/* True when the note was written; not for every step of the queue. */
bool migration_wait_for(struct migration_case *d, const struct migration_wait *w);
/* The same for a wait that is over soon as a rule: only written down when it lasts. */
void migration_wait_since(struct migration_case *d, int64_t since_ms,
                          const struct migration_wait *w);
/* `failure` is the whole text, code included. */
void migration_end_as_failed(struct migration_case *d, enum wire_reason reason,
                             const char *failure);
void migration_fail(struct migration_case *d, enum wire_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* After hand-off a failure is written where the nodes see it; the phase follows from there. With
 * `unsure` the guest may be on its way, or there: the target has to let go of it before anything
 * else happens to it. */
void migration_fail_on_vmi(struct migration_case *d, enum wire_reason reason, const char *message,
                           bool unsure);
/* The source knows where to go: it may have begun and not be able to say so. */
bool migration_may_run_unseen(const struct migration_case *d);
void migration_delete_target_pod(struct migration_case *d);

/* The settings of the move as JSON, owned by the caller; NULL with a wait planned when the policy
 * cannot be used. */
char *migration_configuration(struct migration_case *d, const char **ret_policy);

/* What keeps a target pod from being made (migration_gates.c). */
struct migration_gate {
    bool for_good; /* it will not open: the move ends with the wait's reason and message */
    struct migration_wait wait;
    char text[MIGRATION_TEXT]; /* what `wait` points to, where it is made here */
};
/* True when all are open. Else `ret` (may be NULL) is the first that is closed; it points to the
 * view and to itself. */
bool migration_gates_open(const struct migration_case *d, struct migration_gate *ret);
/* How soon a wait of this migration is looked into again at the latest, by its priority. */
int64_t migration_retry_ms(const struct migration_case *d);

/* Rules of their own files (migration_deadlines.c). */
bool migration_rule_not_started(struct migration_case *d);
bool migration_rule_arrived(struct migration_case *d);
bool migration_rule_node_silent(struct migration_case *d);
bool migration_rule_stuck(struct migration_case *d);
bool migration_rule_target_pod_pending(struct migration_case *d);

/* What a node cannot do for the move (migration_trouble.c): into the migration's condition and
 * note, or out of the condition. True when there is something; `deadline_ms` is when the move stops
 * waiting, 0 = it does not wait. */
bool migration_note_trouble(struct migration_case *d, int64_t deadline_ms);
/* Its reason, static, with words for the condition; NULL = there is none. */
enum wire_reason migration_trouble(const struct migration_case *d, char ret_text[MIGRATION_TEXT]);

/* The rule for each phase, when nothing ended the migration before (migration_phase.c). */
bool migration_rule_phase(struct migration_case *d);
