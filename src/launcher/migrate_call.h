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
#include <yyjson.h>

#include "base/error.h"

struct migrate_options {
    int64_t bandwidth_bytes_per_s; /* 0 = unlimited */
    bool allow_auto_converge, allow_post_copy, allow_workload_disruption, unsafe;
    int64_t completion_timeout_per_gib_s, progress_timeout_s; /* 0 = none */
};

void migrate_options_init(struct migrate_options *o); /* KubeVirt's defaults */
/* `json` may be NULL. Absent fields keep their defaults. */
int migrate_options_decode(const yyjson_val *json, struct migrate_options *ret,
                           struct ferry_error *err);
yyjson_mut_val *migrate_options_json(yyjson_mut_doc *doc, const struct migrate_options *o);

enum migrate_channel { MIGRATE_CHANNEL_CONTROL = 0, MIGRATE_CHANNEL_MEMORY = 49152 };

/* KubeVirt's name of the socket of a channel: DIR/KEY[-49152]-source.sock. Owned by the caller. */
char *migrate_socket_path(const char *dir, const char *key, enum migrate_channel channel);

struct migrate_call {
    unsigned flags;        /* virDomainMigrateFlags */
    char *destination_uri; /* the target's libvirtd */
    char *memory_uri;
    unsigned long long bandwidth_mib_per_s; /* 0 = leave the parameter out */
};
/* `dir`: the pod's migration directory; `key`: the VMI's UID; `paused`: the guest is paused by its
 * user and must stay so. */
void migrate_call_make(const struct migrate_options *o, const char *dir, const char *key,
                       bool paused, struct migrate_call *ret);
void migrate_call_done(struct migrate_call *c);
