/* What is said of a guest's network interfaces. Pure. */
#pragma once

#include "api/kinds.h"

/* The VMI's status.interfaces with all interfaces in it that have a tap, their MAC and the
 * addresses that they were given, as JSON; NULL when it is so already. What others wrote about an
 * interface stays. Owned by the caller. */
char *guest_interfaces(const struct api_vmi *vmi);
