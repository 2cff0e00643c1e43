#include "rpc/rpc_frame.h"

#include <assert.h>
#include <string.h>

#include "rpc/rpc_xdr.h"

/* Of libvirt/virterror.h, which this library does without. */
enum { ERR_ACCESS_DENIED = 88, FROM_RPC = 7, LEVEL_ERROR = 2 };

int rpc_frame_length(const void *data, size_t n, size_t max, size_t *ret, struct ferry_error *err)
{
    struct rpc_xdr x = {.at = data, .left = n};

    *ret = 0;
    if (n < RPC_LENGTH_BYTES) {
        return 0;
    }
    size_t length = rpc_xdr_u32(&x);
    if (length < RPC_SMALLEST || length > max) {
        return ferry_fail(err, FERRY_PEER, "a message of %zu bytes: must be %d to %zu", length,
                          RPC_SMALLEST, max);
    }
    *ret = length;
    return 0;
}

struct rpc_header rpc_frame_header(const void *message)
{
    struct rpc_xdr x = {.at = (const uint8_t *)message + RPC_LENGTH_BYTES,
                        .left = RPC_HEADER_BYTES};
    struct rpc_header h;

    h.program = rpc_xdr_u32(&x);
    h.version = rpc_xdr_u32(&x);
    h.procedure = rpc_xdr_i32(&x);
    h.type = rpc_xdr_u32(&x);
    h.serial = rpc_xdr_u32(&x);
    h.status = rpc_xdr_u32(&x);
    return h;
}

static void put(struct ferry_buf *b, uint32_t v)
{
    const uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
                              (uint8_t)v};

    ferry_buf_append(b, bytes, sizeof(bytes));
}

/* An optional string that is there. */
static void put_text(struct ferry_buf *b, const char *s)
{
    static const char zeros[4];
    size_t n = strlen(s);

    put(b, 1);
    put(b, (uint32_t)n);
    ferry_buf_append(b, s, n);
    ferry_buf_append(b, zeros, (4 - n % 4) % 4);
}

/* virNetMessageError: code, domain, message, level, dom, str1, str2, str3, int1, int2, net. */
static void put_error(struct ferry_buf *b, const char *reason, const char *text)
{
    put(b, ERR_ACCESS_DENIED);
    put(b, FROM_RPC);
    put_text(b, text);
    put(b, LEVEL_ERROR);
    put(b, 0);
    put_text(b, text);
    put_text(b, reason);
    put(b, 0);
    put(b, 0);
    put(b, 0);
    put(b, 0);
}

static void put_reply(struct ferry_buf *b, const struct rpc_header *call, enum rpc_status status,
                      size_t payload)
{
    put(b, (uint32_t)(RPC_SMALLEST + payload));
    put(b, call->program);
    put(b, call->version);
    put(b, (uint32_t)call->procedure);
    put(b, RPC_TYPE_REPLY);
    put(b, call->serial);
    put(b, status);
}

void rpc_frame_refuse(const struct rpc_header *call, const char *reason, const char *text,
                      struct ferry_buf *ret)
{
    ferry_cleanup_buf struct ferry_buf error = {0};

    put_error(&error, reason, text);
    put_reply(ret, call, RPC_STATUS_ERROR, error.len);
    ferry_buf_append(ret, error.data, error.len);
}

void rpc_frame_done(const struct rpc_header *call, struct ferry_buf *ret)
{
    put_reply(ret, call, RPC_STATUS_OK, 0);
}
