/* Which of its three roles this node shows to a VMI. Pure. */
#pragma once

#include "api/kinds.h"

enum node_role {
    NODE_ROLE_NONE,   /* none of our business */
    NODE_ROLE_OWNER,  /* the guest lives here: ordinary life */
    NODE_ROLE_SOURCE, /* a move away from here is under way */
    NODE_ROLE_TARGET, /* a move to here is under way or not yet cleaned up */
};

enum node_role node_role_of(const struct api_vmi *vmi, const char *node);
const char *node_role_name(enum node_role role);
