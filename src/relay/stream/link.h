/* The connection that carries a stream for a while: dialled, proven, used, ended; replaced by
 * another when it breaks. Never waits; each step does what it can. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "relay/common/spec.h"
#include "tls/conn.h"

enum relay_link_state {
    RELAY_LINK_NONE,
    RELAY_LINK_CONNECTING,
    RELAY_LINK_PROVING, /* TLS handshake */
    RELAY_LINK_UP,
    RELAY_LINK_ENDING, /* all is sent; waiting for the peer to end too */
};

struct relay_link {
    enum relay_link_state state;
    int fd; /* -1 in NONE */
    struct tls_conn *tls;
    int64_t deadline_ns; /* of CONNECTING, PROVING and ENDING */
    short want;          /* what poll() is to be asked about in these states */
    bool readable;       /* in UP: reading may get something */
    bool blocked;        /* in UP: the kernel takes no more for now, */
    bool read_waits;     /* and reading needs that first: TLS has something to say */
};

#define RELAY_LINK_INIT                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* From NONE. The address is numeric. */
int relay_link_dial(struct relay_link *l, const struct relay_spec *spec, int port,
                    struct tls_credentials *credentials, int64_t now, struct ferry_error *err);
/* Takes over a proven connection; what was there before is closed. */
void relay_link_adopt(struct relay_link *l, int fd, struct tls_conn *tls);
/* In CONNECTING, PROVING and ENDING: goes on. 1 when the state has changed (CONNECTING to PROVING
 * to UP; ENDING to NONE), 0 to wait, negative on failure: then the state is NONE. */
int relay_link_step(struct relay_link *l, int64_t now, struct ferry_error *err);
/* From UP, with nothing left to send. */
void relay_link_end(struct relay_link *l, int64_t now);
/* To NONE, at once. */
void relay_link_close(struct relay_link *l);

/* How a relay's side of a move proves itself; shared with those that do it by themselves. */
void relay_link_tls_config(const struct relay_spec *spec, struct tls_credentials *credentials,
                           int fd, struct tls_conn_config *ret);
