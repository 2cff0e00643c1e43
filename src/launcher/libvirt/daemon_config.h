/* Settings of the private libvirtd. Pure: text out.
 *
 * It runs without cgroups, systemd or D-Bus, for one guest; as an ordinary user without
 * capabilities, or as root with QEMU as root, too: then the sandbox is all there is between them
 * and the host. Its
 * keep-alive towards a peer is long on purpose: the relay notices a dead path in seconds and may
 * bridge an outage for minutes; libvirt must not give up first. */
#pragma once

#include <stdbool.h>

/* First line of qemu.conf: whoever finds it knows that the file is ours to replace. */
#define DAEMON_CONFIG_MARK "# Written by ferry-launcher at each start.\n"

struct daemon_config {
    const char *socket_dir;
    const char *host_uuid; /* libvirt refuses to migrate between daemons with the same one */
};

/* Both owned by the caller. */
char *daemon_config_libvirtd(const struct daemon_config *c);
/* `gate`: libvirtd asks our lock driver before it lets a guest run (gate.h). `disk_dir`: what lies
 * there is shared with the other node unless a move copies it; libvirt would judge by the file
 * system's type and refuse what a host mounts in other ways. */
char *daemon_config_qemu(bool root, bool gate, const char *disk_dir);
