/* Reading XDR (RFC 4506), the encoding of libvirt's calls, from bytes of a peer. Pure.
 *
 * Nothing is allocated and nothing is copied: texts are pointers into the bytes. A reader remembers
 * the first thing that does not fit, and gives zeros and empty texts from then on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_xdr {
    const uint8_t *at;
    size_t left;
    bool bad;
};

/* Not ended by a NUL. */
struct rpc_text {
    const char *data; /* never NULL after a read */
    size_t len;
};

uint32_t rpc_xdr_u32(struct rpc_xdr *x);
int32_t rpc_xdr_i32(struct rpc_xdr *x);
uint64_t rpc_xdr_u64(struct rpc_xdr *x);
/* string<> and opaque<>, of at most `max` bytes. */
struct rpc_text rpc_xdr_bytes(struct rpc_xdr *x, size_t max);
/* An optional string, as libvirt's remote_string; false when it is absent. */
bool rpc_xdr_optional(struct rpc_xdr *x, size_t max, struct rpc_text *ret);
/* Everything was read and fitted. */
bool rpc_xdr_done(const struct rpc_xdr *x);

/* Whether it is exactly `s`, which has no NUL inside. */
bool rpc_text_is(struct rpc_text t, const char *s);
