/* What became of a move, from the objects that tell of it. Pure. */
#pragma once

#include "api/kinds.h"

enum outcome { OUTCOME_GOING, OUTCOME_SUCCEEDED, OUTCOME_FAILED, OUTCOME_CANCELLED };

/* `m` is the migration object as last seen, `gone` whether it has since been removed; `vmi` may be
 * NULL when the VM is not there. */
enum outcome outcome_of(const struct api_migration *m, bool gone, const struct api_vmi *vmi);

/* What is known of this very move: the VM's account while it is about it, because it is the fresher
 * one, else the migration's own; NULL before there is any. */
const struct api_migration_state *outcome_state(const struct api_migration *m,
                                                const struct api_vmi *vmi);

/* The node that the guest leaves, or left; and where it goes. NULL = not known (yet). */
const char *outcome_from(const struct api_migration *m, const struct api_vmi *vmi);
const char *outcome_to(const struct api_migration *m, const struct api_vmi *vmi);

/* Why it failed, in the words of whoever found out; never NULL. */
const char *outcome_reason(const struct api_migration *m, const struct api_vmi *vmi);

/* Exit code of a verb that waited for a move. Pure. */
int cli_outcome_code(enum outcome outcome);
