/* The hand-shake by which a post-copy goes on over fresh streams (docs/contracts/moves.md): the
 * source asks for generation N in an annotation, the target answers with fresh ports and the same
 * N. Values are "MOVE/N", so that those of an earlier move mean nothing. Pure. */
#pragma once

#include <stdint.h>

#include "api/object.h"

#define ANNOTATION_RECOVER "ferry.io/recover"
#define ANNOTATION_PORTS_GENERATION "ferry.io/ports-generation"

/* What the annotation says of the VMI's present move; 0 = nothing. */
int64_t recovery_generation(const struct api_vmi *vmi, const char *annotation);
/* The annotation's value; the caller's. */
char *recovery_value(const struct api_vmi *vmi, int64_t generation);

/* The target's word that the guest of the current move did not run there and never will: the source
 * may have it back. */
#define ANNOTATION_TARGET_STATE "ferry.io/target-state"
bool recovery_never_ran(const struct api_vmi *vmi);
char *recovery_never_ran_value(const struct api_vmi *vmi);
