/* One connection of a source's libvirt, passed on to the target's message by message. */
#pragma once

#include "base/error.h"
#include "rpc/rpc_agreement.h"

/* Told of a refusal at once, before the client's goodbye. */
typedef void rpc_report(const struct ferry_error *why);

/* Blocks until both sides have ended, or one message was refused: then the server's side ends, and
 * the client is given a moment to read why and to take its leave. 0; DENIED or PEER: refused; else
 * the server cannot be talked to. `refused`: why an earlier connection of the move was, or NULL.
 * Takes no descriptors. One thread. */
int rpc_pump(int client, int server, const struct rpc_agreement *a, const char *refused,
             rpc_report *report, struct ferry_error *err);
