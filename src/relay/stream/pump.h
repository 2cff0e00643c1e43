/* The data path: bytes between one unix connection and one proven TLS connection, as they are. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/common/rate.h"
#include "tls/conn.h"

/* Read by any thread while the pump runs. */
struct relay_counters {
    atomic_uint_fast64_t in;      /* from the network, delivered to the unix side */
    atomic_uint_fast64_t out;     /* from the unix side, taken by TLS */
    atomic_uint_fast64_t dropped; /* from the network, but the unix side no longer read */
};

struct relay_pump {
    int unix_fd, tcp_fd; /* non-blocking, borrowed */
    struct tls_conn *tls;
    int stop_fd;
    bool plain; /* no TLS: FIN is a half-close, and nothing tells a full one before a write */
    struct relay_rate *rate; /* or NULL */
    struct relay_counters *counters;
};

enum relay_end {
    RELAY_BOTH_ENDED, /* each side said that it has no more to send */
    RELAY_LOCAL_LEFT, /* the process at the unix socket closed it; all it sent was passed on */
    RELAY_PEER_LEFT,  /* the peer's process did; all it sent was delivered */
};

/* Runs until one of these ends (result >= 0), or fails: both sockets are then to be closed at once.
 * CANCELLED when `stop_fd` became readable. Memory: two buffers of 256 KiB, touched as used. */
int relay_pump_run(const struct relay_pump *p, struct ferry_error *err);

const char *relay_end_text(enum relay_end end);
