/* What a decision comes to: an ordered list of writes and events, as a value. Decide functions
 * build plans and touch nothing; plan_apply() (plan_apply.c) carries one out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"
#include "base/cleanup.h"
#include "kube/recorder.h"

enum plan_op {
    PLAN_PATCH,        /* JSON patch of the object */
    PLAN_PATCH_STATUS, /* JSON patch of its status */
    PLAN_CREATE,       /* body = manifest; one of that name already there ends the plan */
    PLAN_DELETE,       /* only the incarnation `uid`; gone already is fine */
    PLAN_EVICT,        /* asks for the eviction of a pod; gone already is fine */
    PLAN_EVENT,        /* body = message */
};

struct plan_action {
    enum plan_op op;
    enum api_kind kind;
    const struct api_resource *resource; /* of kinds that are not decoded; NULL = the kind's */
    char *ns, *name, *uid;               /* of the object */
    char *body;
    enum kube_event_type event_type;
    const char *event_reason; /* static */
    const char *event_code;   /* reason code of a move that failed, static, or NULL */
    char *event_vmi;          /* that the migration moves, else NULL */
};

struct plan {
    const char *rule;   /* which rule decided; static, "" = none */
    const char *phase;  /* the phase it moves to, static; NULL = no change */
    const char *reason; /* reason code of a wait or a failure, static, or NULL */
    bool confirm;       /* rests on something not being there: make sure before acting, because a
                         * cache may lag */
    int64_t again_ms;   /* look again after this time at the latest; 0 = when something changes */
    struct plan_action *actions;
    size_t n;
};

void plan_done(struct plan *p);
#define plan_cleanup ferry_cleanup(plan_done)

/* Takes the patch; an empty one adds nothing. */
void plan_patch(struct plan *p, const struct api_object *o, struct api_patch *patch_take);
void plan_patch_status(struct plan *p, const struct api_object *o, struct api_patch *patch_take);
void plan_create(struct plan *p, enum api_kind kind, const char *ns, const char *name,
                 char *manifest_take);
/* The same for objects of kinds that are not decoded. */
void plan_create_of(struct plan *p, const struct api_resource *resource, const char *ns,
                    const char *name, char *manifest_take);
void plan_patch_status_of(struct plan *p, const struct api_resource *resource,
                          const struct api_object *o, struct api_patch *patch_take);
void plan_delete(struct plan *p, const struct api_object *o);
void plan_evict(struct plan *p, const struct api_object *pod);
void plan_event(struct plan *p, const struct api_object *about, enum kube_event_type type,
                const char *reason, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Why, as a code, the move of the event that was planned last failed; static. */
void plan_event_code(struct plan *p, const char *code);
/* The earlier of what was asked for and this; never below 1 ms. */
void plan_again(struct plan *p, int64_t after_ms);

/* Takes all that `more` plans, behind what is there; `more` is empty after. */
void plan_append(struct plan *p, struct plan *more);

/* First action of a kind, for tests and logs; NULL when there is none. */
const struct plan_action *plan_find(const struct plan *p, enum plan_op op, enum api_kind kind);

/* ---- pieces of patches ------------------------------------------------------------------------
 */

/* Test that the object is still the one that was read. */
void plan_guard(struct api_patch *p, const struct api_object *o);
/* Adds {} at `path` when the object has nothing there. */
void plan_ensure_object(struct api_patch *p, const struct api_object *o, const char *path);
void plan_set_label(struct api_patch *p, const struct api_object *o, const char *key,
                    const char *value);
/* NULL value removes; no operation when it is as wanted already. */
void plan_set_annotation(struct api_patch *p, const struct api_object *o, const char *key,
                         const char *value);
void plan_add_finalizer(struct api_patch *p, const struct api_object *o, const char *finalizer);
/* Guarded by a test of the list, so that nobody else's finalizer goes. */
void plan_remove_finalizer(struct api_patch *p, const struct api_object *o, const char *finalizer);
bool plan_has_finalizer(const struct api_meta *m, const char *finalizer);
/* status.phase and an entry in status.phaseTransitionTimestamps; needs plan_guard(). */
void plan_set_phase(struct api_patch *p, const struct api_object *o, enum wire_phase phase,
                    int64_t now_ms);
/* The same for all from `first` to `phase`, which were passed at once: each gets its entry. */
void plan_set_phases(struct api_patch *p, const struct api_object *o, enum wire_phase first,
                     enum wire_phase phase, int64_t now_ms);
/* Adds or replaces a condition; an equal one (status, reason, message) is left alone. Needs
 * plan_guard(). True when the patch changes something. */
struct plan_condition {
    const char *type, *status, *reason, *message;
};
bool plan_set_condition(struct api_patch *p, const struct api_object *o,
                        const struct api_conditions *present, const struct plan_condition *c,
                        int64_t now_ms);
bool plan_remove_condition(struct api_patch *p, const struct api_conditions *present,
                           const char *type);
/* Several at once, as one write of the whole list; one without a status is taken away. Others stay
 * as they are. Needs plan_guard(), and a status to be there. */
bool plan_set_conditions(struct api_patch *p, const struct api_object *o,
                         const struct api_conditions *present, const struct plan_condition *want,
                         size_t n, int64_t now_ms);
/* Writes `json` at `path` unless it is what is there; NULL takes it away. Needs plan_guard(). */
bool plan_set_value(struct api_patch *p, const struct api_object *o, const char *path,
                    const char *json);
