#include "relay/protocol/frame.h"

#include <assert.h>
#include <string.h>

#include "base/count.h"

/* What the header of each type may look like. */
static const struct rule {
    const char *name;
    uint32_t min, max; /* payload length */
    uint8_t flags;     /* allowed bits */
    bool offset;       /* the offset field has a meaning */
} rules[FRAME_TYPE_COUNT] = {
    [FRAME_HELLO] = {"HELLO", FRAME_HELLO_FIXED + 1, FRAME_HELLO_FIXED + FRAME_MOVE_MAX,
                     FRAME_NEW | FRAME_RESUME, true},
    [FRAME_HELLO_OK] = {"HELLO-OK", FRAME_HELLO_OK_LENGTH, FRAME_HELLO_OK_LENGTH, FRAME_FINISHED,
                        true},
    [FRAME_REFUSED] = {"REFUSED", 2, FRAME_NOTE_MAX, 0, false},
    [FRAME_DATA] = {"DATA", 1, FRAME_DATA_MAX, 0, true},
    [FRAME_ACK] = {"ACK", FRAME_ACK_LENGTH, FRAME_ACK_LENGTH, FRAME_FINISHED, true},
    [FRAME_FIN] = {"FIN", 0, 0, 0, true},
    [FRAME_PING] = {"PING", 0, 0, 0, true},
    [FRAME_PONG] = {"PONG", 0, 0, 0, true},
    [FRAME_RESET] = {"RESET", 2, FRAME_NOTE_MAX, FRAME_ECHO, false},
};

static const char *const refusal_names[] = {
    [FRAME_REFUSED_VERSION] = "version",
    [FRAME_REFUSED_MALFORMED] = "malformed",
    [FRAME_REFUSED_DENIED] = "denied",
    [FRAME_REFUSED_MOVE] = "unknown move",
    [FRAME_REFUSED_CHANNEL] = "channel",
    [FRAME_REFUSED_KNOWN] = "known stream",
    [FRAME_REFUSED_UNKNOWN] = "unknown stream",
    [FRAME_REFUSED_STALE] = "stale epoch",
    [FRAME_REFUSED_EXPIRED] = "expired",
    [FRAME_REFUSED_ENDED] = "ended",
    [FRAME_REFUSED_OFFSET] = "offset",
    [FRAME_REFUSED_UNIX] = "unix socket",
    [FRAME_REFUSED_BUSY] = "busy",
};
static_assert(FERRY_COUNT(refusal_names) == FRAME_REFUSAL_COUNT, "one name a refusal");

static const char *const reset_names[] = {
    [FRAME_RESET_PROTOCOL] = "protocol",   [FRAME_RESET_UNIX] = "unix socket",
    [FRAME_RESET_CANCELLED] = "cancelled", [FRAME_RESET_RESOURCES] = "resources",
    [FRAME_RESET_STATE] = "state lost",
};
static_assert(FERRY_COUNT(reset_names) == FRAME_RESET_COUNT, "one name a reset");

uint16_t frame_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

uint32_t frame_u32(const uint8_t *p)
{
    return (uint32_t)frame_u16(p) << 16 | frame_u16(p + 2);
}

uint64_t frame_u64(const uint8_t *p)
{
    return (uint64_t)frame_u32(p) << 32 | frame_u32(p + 4);
}

void frame_set_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

void frame_set_u32(uint8_t *p, uint32_t v)
{
    frame_set_u16(p, (uint16_t)(v >> 16));
    frame_set_u16(p + 2, (uint16_t)v);
}

void frame_set_u64(uint8_t *p, uint64_t v)
{
    frame_set_u32(p, (uint32_t)(v >> 32));
    frame_set_u32(p + 4, (uint32_t)v);
}

int frame_get(const uint8_t header[FRAME_HEADER], struct frame *ret, struct ferry_error *err)
{
    unsigned type = header[0];
    uint8_t flags = header[1];
    uint32_t length = frame_u32(header + 4);
    uint64_t offset = frame_u64(header + 8);

    if (type == 0 || type >= FRAME_TYPE_COUNT) {
        return ferry_fail(err, FERRY_PEER, "frame of unknown type %u", type);
    }
    const struct rule *rule = &rules[type];

    if (flags & ~rule->flags) {
        return ferry_fail(err, FERRY_PEER, "%s with unknown flags 0x%02x", rule->name, flags);
    }
    if (type == FRAME_HELLO && flags != FRAME_NEW && flags != FRAME_RESUME) {
        return ferry_fail(err, FERRY_PEER, "HELLO must be either NEW or RESUME");
    }
    if (frame_u16(header + 2) != 0) {
        return ferry_fail(err, FERRY_PEER, "%s with reserved bytes set", rule->name);
    }
    if (length < rule->min || length > rule->max) {
        return ferry_fail(err, FERRY_PEER, "%s of %u bytes, allowed are %u to %u", rule->name,
                          length, rule->min, rule->max);
    }
    if (offset >= FRAME_NUMBER_MAX || (offset != 0 && !rule->offset)) {
        return ferry_fail(err, FERRY_PEER, "%s with offset %llu", rule->name,
                          (unsigned long long)offset);
    }
    *ret = (struct frame){
        .type = (enum frame_type)type, .flags = flags, .length = length, .offset = offset};
    return 0;
}

size_t frame_put(uint8_t *buf, enum frame_type type, uint8_t flags, uint32_t length,
                 uint64_t offset)
{
    buf[0] = (uint8_t)type;
    buf[1] = flags;
    frame_set_u16(buf + 2, 0);
    frame_set_u32(buf + 4, length);
    frame_set_u64(buf + 8, offset);
    return FRAME_HEADER;
}

size_t frame_put_hello_ok(uint8_t *buf, uint8_t flags, uint64_t delivered,
                          const uint8_t instance[FRAME_ID], uint32_t window)
{
    frame_put(buf, FRAME_HELLO_OK, flags, FRAME_HELLO_OK_LENGTH, delivered);
    memcpy(buf + FRAME_HEADER, instance, FRAME_ID);
    frame_set_u32(buf + FRAME_HEADER + FRAME_ID, window);
    return FRAME_HEADER + FRAME_HELLO_OK_LENGTH;
}

size_t frame_put_ack(uint8_t *buf, uint8_t flags, uint64_t delivered, uint32_t window)
{
    frame_put(buf, FRAME_ACK, flags, FRAME_ACK_LENGTH, delivered);
    frame_set_u32(buf + FRAME_HEADER, window);
    return FRAME_HEADER + FRAME_ACK_LENGTH;
}

size_t frame_put_note(uint8_t *buf, enum frame_type type, uint8_t flags, uint16_t code,
                      const char *text)
{
    size_t n = strnlen(text, FRAME_TEXT_MAX);

    frame_put(buf, type, flags, (uint32_t)(2 + n), 0);
    frame_set_u16(buf + FRAME_HEADER, code);
    memcpy(buf + FRAME_HEADER + 2, text, n);
    return FRAME_HEADER + 2 + n;
}

void frame_get_note(const uint8_t *payload, size_t length, uint16_t *ret_code,
                    char ret_text[FRAME_TEXT_MAX + 1])
{
    size_t n = length - 2;

    *ret_code = frame_u16(payload);
    for (size_t i = 0; i < n; i++) {
        uint8_t c = payload[2 + i];

        ret_text[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    ret_text[n] = '\0';
}

const char *frame_type_name(unsigned type)
{
    return type > 0 && type < FRAME_TYPE_COUNT ? rules[type].name : "unknown";
}

const char *frame_refusal_name(unsigned refusal)
{
    return refusal > 0 && refusal < FRAME_REFUSAL_COUNT ? refusal_names[refusal] : "unknown code";
}

const char *frame_reset_name(unsigned reset)
{
    return reset > 0 && reset < FRAME_RESET_COUNT ? reset_names[reset] : "unknown code";
}
