/* Which users guests run as: the controller gives each VMI one of its own (status.runtimeUser), the
 * same on all nodes, and ferry-pods runs nobody else's pods as one of these. They are where neither
 * Debian nor systemd gives users to anybody, below 2^31 for what counts with a sign. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WIRE_USER_FIRST = 1879048192, WIRE_USERS = 65536 };

static inline bool wire_user_is_guest(int64_t user)
{
    return user >= WIRE_USER_FIRST && user < (int64_t)WIRE_USER_FIRST + WIRE_USERS;
}
