/* How fast a guest dirties its memory, by QEMU's own sampling of pages. QEMU measures one thing at
 * a time; so do we. Any thread. */
#pragma once

#include <libvirt/libvirt.h>
#include <stdint.h>

#include "base/error.h"

/* Distinct bytes that the guest dirties within `seconds`; takes as long. */
int dirty_rate_sample(virDomainPtr d, int seconds, int64_t *ret, struct ferry_error *err);
/* Bytes per second as last measured, and has it measured anew for the next who asks; -1 while
 * nothing is known, or while somebody samples. Does not wait. */
int64_t dirty_rate_latest(virDomainPtr d);
