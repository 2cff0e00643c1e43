/* Who is at the other end of a connection: address, credentials of a unix socket, verified client
 * certificate. Only for server.c. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "http/server.h"

/* What the library knows of a connection, copied at once: newer versions of it give every question
 * the same place for the answer. */
union MHD_ConnectionInfo server_peer_info(struct MHD_Connection *c,
                                          enum MHD_ConnectionInfoType what);

/* On the connection's own thread; `peer` is zeroed. A certificate that does not verify leaves its
 * reason in `tls_error`. */
void server_peer_find(struct MHD_Connection *c, bool tls, struct http_peer *peer);
