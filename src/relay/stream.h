/* One relayed connection from its acceptance to its end, on the calling thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "relay/net.h"
#include "relay/pump.h"
#include "relay/spec.h"
#include "tls/credentials.h"

enum relay_stream_state {
    RELAY_STREAM_CONNECTING, /* identity not proven yet, or the far side not reached */
    RELAY_STREAM_OPEN,
    RELAY_STREAM_CLOSING,
};

/* What others may read while the stream runs. */
struct relay_stream_stats {
    struct relay_counters bytes;
    atomic_int state;
    int64_t since_ms;          /* wall clock; set before the stream runs, as is `peer` */
    char peer[RELAY_NET_NAME]; /* network address of the other relay */
};

struct relay_stream {
    const struct relay_spec *spec;
    const struct relay_channel *channel;
    struct tls_credentials *credentials;
    int stop_fd;       /* readable = end at once */
    atomic_bool *slot; /* taken while this connection holds its channel; NULL = any number may */
    struct relay_stream_stats *stats;
};

/* Takes `fd`, the accepted connection: unix on a source, TCP on a target. Logs what happened. */
void relay_stream_run(const struct relay_stream *s, int fd);

const char *relay_stream_state_name(int state);
