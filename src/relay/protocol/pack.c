#include "relay/protocol/pack.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "relay/protocol/frame.h"

#define NO_TEXT UINT32_MAX

void pack_bytes(struct pack *k, const void *p, size_t n)
{
    if (k->data && n > 0) {
        assert(n <= k->room - k->len);
        memcpy(k->data + k->len, p, n);
    }
    k->len += n;
}

void pack_u8(struct pack *k, uint8_t v)
{
    pack_bytes(k, &v, sizeof(v));
}

void pack_bool(struct pack *k, bool v)
{
    pack_u8(k, v ? 1 : 0);
}

void pack_u32(struct pack *k, uint32_t v)
{
    uint8_t b[4];

    frame_set_u32(b, v);
    pack_bytes(k, b, sizeof(b));
}

void pack_u64(struct pack *k, uint64_t v)
{
    uint8_t b[8];

    frame_set_u64(b, v);
    pack_bytes(k, b, sizeof(b));
}

void pack_i64(struct pack *k, int64_t v)
{
    pack_u64(k, (uint64_t)v);
}

void pack_text(struct pack *k, const char *s)
{
    size_t n = s ? strlen(s) : 0;

    pack_u32(k, s ? (uint32_t)n : NO_TEXT);
    pack_bytes(k, s, n);
}

void unpack_fail(struct unpack *u, const char *what)
{
    u->bad = u->bad ? u->bad : what;
}

const uint8_t *unpack_bytes(struct unpack *u, size_t n)
{
    if (u->bad || n > u->len - u->pos) {
        unpack_fail(u, "it ends too early");
        return NULL;
    }
    const uint8_t *p = u->data + u->pos;
    u->pos += n;
    return p;
}

uint8_t unpack_u8(struct unpack *u)
{
    const uint8_t *p = unpack_bytes(u, 1);

    return p ? *p : 0;
}

bool unpack_bool(struct unpack *u)
{
    uint8_t v = unpack_u8(u);

    if (v > 1) {
        unpack_fail(u, "a truth value that is neither 0 nor 1");
    }
    return v == 1;
}

uint32_t unpack_u32(struct unpack *u)
{
    const uint8_t *p = unpack_bytes(u, 4);

    return p ? frame_u32(p) : 0;
}

uint64_t unpack_u64(struct unpack *u)
{
    const uint8_t *p = unpack_bytes(u, 8);

    return p ? frame_u64(p) : 0;
}

int64_t unpack_i64(struct unpack *u)
{
    return (int64_t)unpack_u64(u);
}

/* Where a text lies and how long it is; NULL for none. */
static const char *find_text(struct unpack *u, size_t max, size_t *ret_len)
{
    uint32_t n = unpack_u32(u);

    if (u->bad || n == NO_TEXT) {
        return NULL;
    }
    if (n > max) {
        unpack_fail(u, "a text that is too long");
        return NULL;
    }
    const char *p = (const char *)unpack_bytes(u, n);
    if (p && memchr(p, '\0', n)) {
        unpack_fail(u, "a text with a NUL in it");
        return NULL;
    }
    *ret_len = n;
    return p;
}

char *unpack_text(struct unpack *u, size_t max)
{
    size_t n = 0;
    const char *p = find_text(u, max, &n);

    return p ? ferry_strndup(p, n) : NULL;
}

void unpack_text_into(struct unpack *u, char *buf, size_t size)
{
    size_t n = 0;
    const char *p = find_text(u, size - 1, &n);

    if (p) {
        memcpy(buf, p, n);
    }
    buf[n] = '\0';
}
