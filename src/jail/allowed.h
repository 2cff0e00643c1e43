/* System calls that what runs in a pod's sandbox may make: launcher, libvirtd, QEMU and the tools
 * that they start. One list, since a filter is inherited; QEMU has a tighter one of its own besides
 * (libvirt's seccomp_sandbox).
 *
 * Most were recorded in real runs: start, moves of every kind, console, stop. Some belong to what
 * cannot be recorded everywhere: KVM, vhost and VFIO (calls of ioctl), NUMA, userfaultfd, older and
 * newer forms of a call that another libc takes. All else gets ENOSYS, as from a kernel without it,
 * so that libraries fall back; what has been a door before gets EPERM (refused.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Programs that are built with a sanitizer need a call that others must not have. */
#ifdef __SANITIZE_ADDRESS__
#define JAIL_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JAIL_SANITIZED
#endif
#endif

const char *const *jail_allowed(size_t *ret_n);

/* From now on, for this process and all that come from it. Needs "no new privileges". */
int jail_allow(struct ferry_error *err);
