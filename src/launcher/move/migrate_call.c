#include "launcher/move/migrate_call.h"

#include <libvirt/libvirt.h>
#include <stdlib.h>

#include "base/channels.h"
#include "base/str.h"

enum { MIB = 1 << 20, MULTIFD_WITH_POSTCOPY = 10001000 /* QEMU 10.1 */ };

char *migrate_destination_uri(const char *dir, const char *key, bool system)
{
    ferry_cleanup_free char *control = ferry_channel_path(dir, key, FERRY_CHANNEL_CONTROL);

    return ferry_asprintf("qemu+unix:///%s?socket=%s", system ? "system" : "session", control);
}

/* Rounded to MiB/s, never down to 0, which would mean unlimited. */
static unsigned long long mib_per_s(int64_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    return bytes < MIB ? 1 : (unsigned long long)((bytes + MIB / 2) / MIB);
}

static unsigned flags_of(const struct wire_options *o, const struct migrate_call_input *in)
{
    unsigned flags = VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_PERSIST_DEST;

    flags |= o->unsafe ? VIR_MIGRATE_UNSAFE : 0;
    flags |= o->allow_auto_converge && !in->limits_writes ? VIR_MIGRATE_AUTO_CONVERGE : 0;
    flags |= o->allow_post_copy && !in->vfio ? VIR_MIGRATE_POSTCOPY : 0;
    flags |= in->paused ? VIR_MIGRATE_PAUSED : 0;
    return flags;
}

void migrate_call_make(const struct wire_options *o, const struct migrate_call_input *in,
                       struct migrate_call *ret)
{
    ferry_cleanup_free char *memory = ferry_channel_path(in->dir, in->key, FERRY_CHANNEL_MEMORY);

    *ret = (struct migrate_call){
        .flags = flags_of(o, in),
        .destination_uri = migrate_destination_uri(in->dir, in->key, in->system),
        .memory_uri = ferry_asprintf("unix://%s", memory),
        .bandwidth_mib_per_s = mib_per_s(o->bandwidth_bytes_per_s),
        .switchover_mib_per_s = mib_per_s(o->path_bytes_per_s),
    };
    if (o->allow_post_copy && in->vfio) {
        ret->note = "post-copy is left out: a device of the host is attached to the guest";
    }
    if (in->copies_disks) {
        ferry_cleanup_free char *disks = ferry_channel_path(in->dir, in->key, FERRY_CHANNEL_DISKS);

        ret->flags |= VIR_MIGRATE_NON_SHARED_INC;
        ret->disks_uri = ferry_asprintf("unix://%s", disks);
    }
    if (o->parallel_connections == 0) {
        return;
    }
    /* One of the two: a guest that may not converge is worse off than one that moves slower. */
    if (ret->flags & VIR_MIGRATE_POSTCOPY && in->qemu_version < MULTIFD_WITH_POSTCOPY) {
        ret->note = "parallel connections are left out: this QEMU cannot combine them with "
                    "post-copy, which is allowed";
        return;
    }
    ret->flags |= VIR_MIGRATE_PARALLEL;
    ret->connections = (int)o->parallel_connections;
    ret->zstd = o->zstd;
    ret->flags |= o->zstd ? VIR_MIGRATE_COMPRESSED : 0;
}

void migrate_call_done(struct migrate_call *c)
{
    free(c->destination_uri);
    free(c->memory_uri);
    free(c->disks_uri);
    *c = (struct migrate_call){0};
}
