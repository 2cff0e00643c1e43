/* What of a guest's memory is in use, from QEMU's /proc/PID/smaps. Pure. */
#pragma once

#include <stdint.h>

/* Resident bytes of the mapping that is the guest's memory: the smallest one that holds at least
 * `guest_bytes`. -1 when there is none. */
int64_t smaps_guest_resident(const char *text, int64_t guest_bytes);
