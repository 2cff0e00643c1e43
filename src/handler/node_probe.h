/* One TLS handshake with a relay, as a source makes it, and nothing more: no stream is opened and
 * nothing is dialled behind it. Blocking, a few seconds at most; any thread. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct node_probe {
    bool ok;
    struct ferry_error error; /* why not */
};

/* With relay.crt and relay.key of `pki_dir`, to the relay of `node`. */
void node_probe(const char *pki_dir, const char *node, const char *address, int port,
                struct node_probe *ret);
