/* One launcher: a private libvirtd (or one that is there already), one guest, its moves, and the
 * control API over them. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct launcher_config {
    const char *namespace_, *name, *uid; /* of the VMI */
    const char *guest_dir, *console_dir, *disk_dir, *migration_dir, *libvirt_dir, *state_dir;
    const char *emulator, *libvirtd;
    const char *libvirt_uri; /* NULL = a libvirtd of our own */
    bool kvm;
    int control_fd;   /* listening unix socket; taken */
    int kills_fd;     /* counts what the kernel kills in this pod for memory, or -1; taken */
    int store_fds[2]; /* a socket pair that outlives us (qmp_session.h), or -1; taken */
};

/* Runs until it was asked to stop and the guest is gone. The stop signals must be blocked
 * (ferry_signals_block()). Returns 0, or the negative class when it cannot even start. */
int launcher_run(const struct launcher_config *cfg, struct ferry_error *err);
