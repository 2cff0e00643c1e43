/* QEMUs that libvirtd starts to ask what they can do. One that is killed meanwhile leaves them
 * behind: they have no guest, and nobody would ever end them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether a process with this command line (arguments that end with '\0', `len` bytes in all) is
 * such a QEMU, made by a libvirtd that keeps its files below one of `dirs` (ends with NULL). Pure.
 */
bool probes_is_one(const char *cmdline, size_t len, const char *const *dirs);
/* Ends all of them that live in this process' mount namespace. Only while no libvirtd runs. */
void probes_end(const char *const *dirs);
