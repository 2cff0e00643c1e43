/* How libvirt is asked to migrate: options of the control API to flags, URIs and parameters. Pure.
 *
 * Always LIVE, PEER2PEER (the source's libvirtd drives the target's through the relay, so the move
 * goes on when the launcher dies) and PERSIST_DEST, as KubeVirt has it. Domains are persistent on
 * both sides on purpose: after the move the source's definition stays behind as "shut off
 * (migrated)", and a launcher that was restarted meanwhile can still tell a guest that moved away
 * from one that ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/wire/wire_options.h"

/* The target's libvirt as the source reaches it, through the relay. Owned by the caller. */
char *migrate_destination_uri(const char *dir, const char *key, bool system);

/* What the call depends on beside the options. */
struct migrate_call_input {
    const char *dir; /* the pod's migration directory */
    const char *key; /* the VMI's UID */
    bool paused;     /* the guest is paused by its user and must stay so */
    bool copies_disks;
    bool vfio;          /* a device of the host is attached: its memory cannot be fetched later */
    bool system;        /* both libvirts are qemu:///system, else session */
    bool limits_writes; /* of the guest, instead of auto-converge (dirty_limit.h) */
    unsigned long qemu_version; /* as libvirt counts: 10000000 is 10.0.0 */
};

struct migrate_call {
    unsigned flags;        /* virDomainMigrateFlags */
    char *destination_uri; /* the target's libvirtd */
    char *memory_uri;
    char *disks_uri;                         /* NULL: no disk is copied */
    unsigned long long bandwidth_mib_per_s;  /* 0 = leave the parameter out */
    unsigned long long switchover_mib_per_s; /* likewise */
    int connections;                         /* likewise */
    bool zstd;
    const char *note; /* what was asked for and is not done, and why; NULL = nothing */
};
void migrate_call_make(const struct wire_options *o, const struct migrate_call_input *in,
                       struct migrate_call *ret);
void migrate_call_done(struct migrate_call *c);
