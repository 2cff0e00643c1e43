/* What migration_decide() writes: patches of the VMI and texts of annotations. Pure; all results
 * are owned by the caller. */
#pragma once

#include "api/object.h"
#include "control/migration/migration_decide.h"

/* Hands the VMI over to the nodes: migrationState with the configuration frozen in it, and the
 * label that the target's handler selects by. Fails as a whole when the VMI is no longer what was
 * looked at: another move, node, phase or incarnation. `policy` may be NULL; `configuration` is
 * policy_resolve()'s. */
struct api_patch *migration_patch_hand_off(const struct migration_view *v, const char *policy,
                                           const char *configuration);

/* Ends the move in the VMI's migrationState, which must still be the one that was looked at, for
 * `reason`, which begins with `code`; `unsure`: the target may have the guest, and has to let go of
 * it (vmi_awaits_target()). */
struct api_patch *migration_patch_failed(const struct api_object *vmi, enum wire_reason code,
                                         const char *reason, bool unsure, int64_t now_ms);
/* Completes a move whose guest is on the target node by that node's own word. */
struct api_patch *migration_patch_completed(const struct api_object *vmi);
struct api_patch *migration_patch_abort(const struct api_object *vmi);

/* The migration's own migrationState before hand-off: where the VM is. */
char *migration_state_source(const struct migration_view *v);
/* The migration's own copy when there is nothing of it in the VMI to copy. */
char *migration_state_failed_early(const struct migration_view *v, const char *reason,
                                   int64_t now_ms);

/* Texts of the annotations ferry.io/queue and ferry.io/result. */
struct migration_wait;
char *migration_queue_text(const struct migration_wait *w, int64_t now_ms);
/* Does an older text still say it? Thousands may wait, and each step of the queue moves them all:
 * while it moves, a rough position will do. */
bool migration_queue_text_holds(const char *old, const struct migration_wait *w);
char *migration_result_text(const struct api_migration *m, const struct api_vmi *vmi);
