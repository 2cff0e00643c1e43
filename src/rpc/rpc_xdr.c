#include "rpc/rpc_xdr.h"

#include <string.h>

enum { UNIT = 4 };

/* `n` bytes and what fills them up to whole units, which must be zeros; NULL when they are not
 * there. */
static const uint8_t *take(struct rpc_xdr *x, size_t n)
{
    const uint8_t *from = x->at;
    size_t fill = (UNIT - n % UNIT) % UNIT;

    if (x->bad || n > x->left || fill > x->left - n) {
        x->bad = true;
        return NULL;
    }
    for (size_t i = 0; i < fill; i++) {
        x->bad = x->bad || from[n + i] != 0;
    }
    x->at += n + fill;
    x->left -= n + fill;
    return x->bad ? NULL : from;
}

uint32_t rpc_xdr_u32(struct rpc_xdr *x)
{
    const uint8_t *p = take(x, UNIT);

    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

int32_t rpc_xdr_i32(struct rpc_xdr *x)
{
    return (int32_t)rpc_xdr_u32(x);
}

uint64_t rpc_xdr_u64(struct rpc_xdr *x)
{
    uint64_t high = rpc_xdr_u32(x);

    return high << 32 | rpc_xdr_u32(x);
}

struct rpc_text rpc_xdr_bytes(struct rpc_xdr *x, size_t max)
{
    uint32_t n = rpc_xdr_u32(x);
    const uint8_t *p = NULL;

    if (n > max) {
        x->bad = true;
    } else {
        p = take(x, n);
    }
    return p ? (struct rpc_text){(const char *)p, n} : (struct rpc_text){"", 0};
}

bool rpc_xdr_optional(struct rpc_xdr *x, size_t max, struct rpc_text *ret)
{
    uint32_t there = rpc_xdr_u32(x);

    *ret = (struct rpc_text){"", 0};
    x->bad = x->bad || there > 1;
    if (there != 1) {
        return false;
    }
    *ret = rpc_xdr_bytes(x, max);
    return !x->bad;
}

bool rpc_xdr_done(const struct rpc_xdr *x)
{
    return !x->bad && x->left == 0;
}

bool rpc_text_is(struct rpc_text t, const char *s)
{
    return t.len == strlen(s) && memcmp(t.data, s, t.len) == 0;
}
