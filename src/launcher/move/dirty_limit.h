/* A limit to what each vCPU may write per second, where KVM keeps a dirty ring: only those that
 * write too much are slowed down, unlike by auto-converge, which QEMU does not combine with it.
 * Through QEMU's own monitor, because libvirt does not know it. Any thread. */
#pragma once

#include <stdint.h>

#include "launcher/report/context.h"

/* From a running domain's XML: how many vCPUs can be limited, 0 = none. Pure. */
int64_t dirty_limit_vcpus_of(const char *xml);
/* The same of the guest that runs here. */
int64_t dirty_limit_vcpus(const struct context *c);

/* `mib_per_s` for each vCPU. */
int dirty_limit_set(const struct context *c, int64_t mib_per_s, struct ferry_error *err);
/* For a guest that stays; fine when there is no limit. */
void dirty_limit_cancel(const struct context *c);
