/* Short words on a VMI about its present move, "MOVEUID" or "MOVEUID/WORD": what is left of an
 * earlier move means nothing. Pure.
 *
 * ferry.io/recover: MOVE/N             the source asks for fresh streams for the N-th time
 * ferry.io/ports-generation: MOVE/N    the ports that the target has published are these
 * ferry.io/target-state: MOVE/never-ran   the guest did not run on the target and never will
 * ferry.io/unconfirmed: MOVE           given up without anybody's word on where the guest is */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/kinds.h"

/* What the annotation `key` says of the VMI's present move; 0 = nothing. */
int64_t wire_move_generation(const struct api_vmi *vmi, const char *key);
/* Its value; the caller's. */
char *wire_move_generation_text(const struct api_vmi *vmi, int64_t generation);

bool wire_move_never_ran(const struct api_vmi *vmi);
char *wire_move_never_ran_text(const struct api_vmi *vmi);

bool wire_move_is_unconfirmed(const struct api_vmi *vmi);
