/* One connection of a source's libvirt, passed on to the target's message by message. */
#pragma once

#include "base/error.h"
#include "rpc/rpc_agreement.h"

/* Blocks until both sides have ended, or one message was refused: then the client has been told,
 * and both connections are over. 0; DENIED or PEER: refused, and why; else the server cannot be
 * talked to. Takes no descriptors. One thread. */
int rpc_pump(int client, int server, const struct rpc_agreement *a, struct ferry_error *err);
