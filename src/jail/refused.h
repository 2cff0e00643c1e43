/* System calls that nothing in a pod's sandbox may make: those that no launcher, libvirtd or QEMU
 * has a use for, and that have been doors out of sandboxes before, or into the kernel.
 *
 * What is not in the list of allowed calls (allowed.h) is refused anyway: these get an errno of
 * their own, and of calls that are allowed some arguments are refused here. The filter is one of
 * its own, loaded after that of the allowed calls: what it says goes first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* One refused call. With `argument` >= 0 it is refused for some values of that argument only. */
struct jail_call {
    const char *name;
    int errnum;                     /* what the caller gets */
    int argument;                   /* -1 = whatever the arguments are */
    unsigned long long mask, value; /* refused when (argument & mask) == value */
};

const struct jail_call *jail_refused(size_t *ret_n);

/* From now on, for this process and all that come from it. Needs "no new privileges". */
int jail_close(struct ferry_error *err);
