/* Which of its three faces this node shows to a VMI. Pure. */
#pragma once

#include "api/kinds.h"

enum face {
    FACE_NONE,   /* none of our business */
    FACE_OWNER,  /* the guest lives here: ordinary life */
    FACE_SOURCE, /* a move away from here is under way */
    FACE_TARGET, /* a move to here is under way or not yet cleaned up */
};

enum face face_of(const struct api_vmi *vmi, const char *node);
const char *face_name(enum face face);
