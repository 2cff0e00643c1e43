/* All that a relay has to know to go on where another one stopped, as plain values and as bytes.
 * Pure: no descriptors are touched, only their places in a list that travels beside.
 *
 * Written by a relay that stands still (every group paused), read by its successor. What is read is
 * judged as if a peer had sent it. The version says how the bytes are laid out; a relay reads its
 * own version alone, and its predecessor asks before it stops anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/common/net.h"
#include "relay/common/spec.h"
#include "relay/protocol/hello.h"
#include "relay/protocol/pack.h"
#include "relay/protocol/protocol.h"
#include "tls/denials.h"

enum { RELAY_STATE_VERSION = 1, RELAY_STATE_FDS_MAX = 65536, RELAY_STATE_TOTALS = 10 };

struct relay_state_stream {
    uint32_t channel; /* its place in the spec */
    int fd;           /* place of its unix socket; -1 = closed already */
    bool fresh;       /* source: accepted, and nothing done about it yet */
    int64_t since_ms; /* wall clock */
    char peer[RELAY_NET_NAME];
    /* Unless fresh: */
    int64_t born_ns;
    bool eof, deaf, hup, opened, has_slot;
    uint64_t dropped;
    struct protocol *p;
};

struct relay_state_tomb {
    struct hello_tombstone stone;
    int64_t until_ns;
};

struct relay_state_group {
    struct relay_spec *spec;
    int dir, listeners[RELAY_CHANNELS_MAX]; /* places; -1 = none */
    int ports[RELAY_CHANNELS_MAX];
    struct relay_state_tomb *tombs;
    size_t n_tombs;
    struct relay_state_stream *streams;
    size_t n_streams;
};

struct relay_state_path {
    char *node;
    uint64_t bytes_per_s;
    int64_t rtt_us;
};

struct relay_state {
    bool owned; /* specs, streams' protocols and names belong to it */
    bool alone; /* one side of one path, without a control socket */
    uint8_t instance[FRAME_ID];
    uint64_t rate;
    bool draining;
    uint64_t totals[RELAY_STATE_TOTALS]; /* of streams that are over: five of targets, of sources */
    int control;                         /* place of the listening control socket; -1 = none */
    size_t n_fds;                        /* how many descriptors there are beside */
    int *predecessors; /* places of sockets to relays that only end their last streams */
    size_t n_predecessors;
    struct relay_state_path *paths;
    size_t n_paths;
    struct relay_state_group *groups;
    size_t n_groups;
    /* Nodes that were removed, always owned. Only for a reader that is known to take them: to those
     * before it they are something behind the end. */
    struct tls_denial *denials;
    size_t n_denials;
};

void relay_state_pack(const struct relay_state *s, int64_t now, struct pack *k);
/* Everything in `*ret` is owned. */
int relay_state_unpack(const uint8_t *data, size_t len, int64_t now, struct relay_state *ret,
                       struct ferry_error *err);
/* What was taken out (set to NULL) is left alone. */
void relay_state_done(struct relay_state *s);
