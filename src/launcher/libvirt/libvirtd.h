/* The private libvirtd: written settings, one process, started again when it dies. QEMU is not its
 * child for long (PID 1 adopts it), so the guest runs on without it and the next libvirtd finds it.
 *
 * A launcher that was restarted adopts the libvirtd that its predecessor started. One thread. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct libvirtd;

struct libvirtd_config {
    const char *program;     /* "libvirtd" */
    const char *socket_dir;  /* "libvirt-sock" appears here */
    const char *gate_dir;    /* see gate.h */
    const char *gate_driver; /* directory of the lock driver, or NULL: libvirtd asks no gate */
    const char *host_uuid;
    const char *disk_dir; /* of images */
    bool system;          /* as root: qemu:///system, else session */
};

/* Writes the settings below $XDG_CONFIG_HOME/libvirt, as root to `socket_dir` and
 * /etc/libvirt/qemu.conf, where only a file of ours is replaced: in a sandbox there is none, on a
 * host it is not ours to change (CONFLICT). Starts nothing yet. */
int libvirtd_new(const struct libvirtd_config *cfg, struct libvirtd **ret, struct ferry_error *err);
void libvirtd_free(struct libvirtd *d); /* takes NULL; the process goes on */

/* Looks after the process; call it every now and then. Adopts or starts it when there is none, with
 * a growing pause after failures. True when there is one. */
bool libvirtd_tend(struct libvirtd *d);
/* Kills the process: it hangs. The next libvirtd_tend() starts another. */
void libvirtd_kill(struct libvirtd *d);
/* Ends the process. */
void libvirtd_stop(struct libvirtd *d);
