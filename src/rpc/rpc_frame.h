/* Messages of libvirt's RPC (its src/rpc/virnetprotocol.x): a length that counts itself, a header
 * of six words, a payload. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum {
    RPC_LENGTH_BYTES = 4,
    RPC_HEADER_BYTES = 24,
    RPC_SMALLEST = RPC_LENGTH_BYTES + RPC_HEADER_BYTES,
    /* A call with the XML of a guest that has all that a guest may have is a fifth of it. */
    RPC_CALL_MAX = 1 << 20,
    RPC_ANSWER_MAX = (32 << 20) + RPC_LENGTH_BYTES, /* libvirt's own limit */
};

enum rpc_program {
    RPC_PROGRAM_REMOTE = 0x20008086,
    RPC_PROGRAM_QEMU = 0x20008087,
    RPC_PROGRAM_LXC = 0x20008088,
    RPC_PROGRAM_KEEPALIVE = 0x6b656570,
};

enum rpc_type {
    RPC_TYPE_CALL,
    RPC_TYPE_REPLY,
    RPC_TYPE_MESSAGE,
    RPC_TYPE_STREAM,
    RPC_TYPE_CALL_WITH_FDS,
    RPC_TYPE_REPLY_WITH_FDS,
    RPC_TYPE_STREAM_HOLE,
};

enum rpc_status { RPC_STATUS_OK, RPC_STATUS_ERROR };

struct rpc_header {
    uint32_t program, version;
    int32_t procedure;
    uint32_t type, serial, status;
};

/* How long the message is that begins with these bytes, its length included; 0 while that cannot be
 * said; PEER when no message is so short, or longer than `max`. */
int rpc_frame_length(const void *data, size_t n, size_t max, size_t *ret, struct ferry_error *err);
/* Of a message of at least RPC_SMALLEST bytes. */
struct rpc_header rpc_frame_header(const void *message);

/* The answer of a libvirtd that does not do what was asked for: an error with these words. `reason`
 * is a reason code; whoever called finds it in the error's str2, whoever called that one, too. */
void rpc_frame_refuse(const struct rpc_header *call, const char *reason, const char *text,
                      struct ferry_buf *ret);
/* The answer of one that did it, and has nothing to say. */
void rpc_frame_done(const struct rpc_header *call, struct ferry_buf *ret);
