/* One TLS handshake with a relay, as a source makes it, and nothing more: no stream is opened and
 * nothing is dialled behind it. Blocking, a few seconds at most; any thread. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

enum node_probe_stage {
    NODE_PROBE_REACH, /* no connection */
    NODE_PROBE_MTU,   /* only small packets come through */
    NODE_PROBE_SHAKE, /* connected, but the handshake fails */
    NODE_PROBE_DONE,
};
struct node_probe {
    enum node_probe_stage stage; /* where it ended */
    struct ferry_error error;    /* why, unless DONE */
};

/* With relay.crt and relay.key of `pki_dir`, to the relay of `node`; with `plain` a connection is
 * all that is tried. */
void node_probe(const char *pki_dir, const char *node, const char *address, int port, bool plain,
                struct node_probe *ret);
