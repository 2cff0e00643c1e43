/* Settings of the private libvirtd. Pure: text out.
 *
 * It runs as an ordinary user without capabilities, cgroups, systemd or D-Bus, for one guest. Its
 * keep-alive towards a peer is long on purpose: the relay notices a dead path in seconds and may
 * bridge an outage for minutes; libvirt must not give up first. */
#pragma once

#include "base/error.h"

struct daemon_config {
    const char *socket_dir;
    const char *host_uuid; /* libvirt refuses to migrate between daemons with the same one */
};

/* Both owned by the caller. */
char *daemon_config_libvirtd(const struct daemon_config *c);
char *daemon_config_qemu(void);
