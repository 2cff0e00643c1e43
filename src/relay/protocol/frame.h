/* Frames of ferry stream protocol 1 as bytes. Pure: no state, no allocation.
 *
 * docs/stream-protocol.md is the specification; this file is its chapter "Frames". Everything that
 * can be judged from a frame alone (type, flags, length, number ranges) is judged here, so that
 * the state machine only sees frames that are well-formed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_HELLO_OK,
    FRAME_REFUSED,
    FRAME_DATA,
    FRAME_ACK,
    FRAME_FIN,
    FRAME_PING,
    FRAME_PONG,
    FRAME_RESET,
    FRAME_TYPE_COUNT
};

enum frame_flags {
    FRAME_NEW = 0x01,      /* HELLO */
    FRAME_RESUME = 0x02,   /* HELLO */
    FRAME_FINISHED = 0x01, /* HELLO-OK, ACK: both directions are over and acknowledged */
    FRAME_ECHO = 0x01,     /* RESET: answer to a RESET */
};

enum {
    FRAME_VERSION = 1,
    FRAME_HEADER = 16,
    FRAME_ID = 16,              /* stream and instance ids */
    FRAME_MOVE_MAX = 64,        /* bytes of a move uid */
    FRAME_TEXT_MAX = 256,       /* bytes of the text of REFUSED and RESET */
    FRAME_DATA_MAX = 256 << 10, /* bytes of one DATA frame */
    FRAME_WINDOW_MAX = 64 << 20,
    FRAME_HELLO_FIXED = 36, /* payload of a HELLO before the move uid */
    FRAME_HELLO_OK_LENGTH = 20,
    FRAME_ACK_LENGTH = 4,
    FRAME_NOTE_MAX = 2 + FRAME_TEXT_MAX,                                 /* payload */
    FRAME_HELLO_MAX = FRAME_HEADER + FRAME_HELLO_FIXED + FRAME_MOVE_MAX, /* whole frame */
};
/* Sequence numbers and epochs stay below this, so sums of them never overflow. */
#define FRAME_NUMBER_MAX (UINT64_C(1) << 62)

/* Why a HELLO was turned down. Wire values: never renumbered. */
enum frame_refusal {
    FRAME_REFUSED_VERSION = 1, /* a version this relay does not speak */
    FRAME_REFUSED_MALFORMED,   /* not a HELLO, or one with wrong fields */
    FRAME_REFUSED_DENIED,      /* this node may not use that move or stream */
    FRAME_REFUSED_MOVE,        /* no such move here */
    FRAME_REFUSED_CHANNEL,     /* the move has no such channel */
    FRAME_REFUSED_KNOWN,       /* NEW with an id that is in use */
    FRAME_REFUSED_UNKNOWN,     /* RESUME of an id that is not known */
    FRAME_REFUSED_STALE,       /* an epoch that is not newer than the last */
    FRAME_REFUSED_EXPIRED,     /* too late: the resume window is over */
    FRAME_REFUSED_ENDED,       /* the stream was reset; the text says why */
    FRAME_REFUSED_OFFSET,      /* RESUME with offsets that cannot be */
    FRAME_REFUSED_UNIX,        /* the socket on the target could not be reached */
    FRAME_REFUSED_BUSY,        /* not now: draining, channel taken, too many streams */
    FRAME_REFUSAL_COUNT
};

/* Why a stream was reset. Wire values: never renumbered. */
enum frame_reset {
    FRAME_RESET_PROTOCOL = 1, /* the receiver of the RESET broke a rule */
    FRAME_RESET_UNIX,         /* a unix socket failed */
    FRAME_RESET_CANCELLED,    /* an operator or agent ended it */
    FRAME_RESET_RESOURCES,    /* out of memory */
    FRAME_RESET_STATE,        /* the other relay lost the state of the stream */
    FRAME_RESET_COUNT
};

struct frame {
    enum frame_type type;
    uint8_t flags;
    uint32_t length; /* of the payload */
    uint64_t offset;
};

/* Reads and checks a header. An offset is allowed only where it has a meaning. */
int frame_get(const uint8_t header[FRAME_HEADER], struct frame *ret, struct ferry_error *err);
/* Writes a header, returns FRAME_HEADER. */
size_t frame_put(uint8_t *buf, enum frame_type type, uint8_t flags, uint32_t length,
                 uint64_t offset);

/* Whole frames; each returns the number of bytes written. */
size_t frame_put_hello_ok(uint8_t *buf, uint8_t flags, uint64_t delivered,
                          const uint8_t instance[FRAME_ID], uint32_t window);
size_t frame_put_ack(uint8_t *buf, uint8_t flags, uint64_t delivered, uint32_t window);
/* REFUSED or RESET; the text is cut to FRAME_TEXT_MAX. */
size_t frame_put_note(uint8_t *buf, enum frame_type type, uint8_t flags, uint16_t code,
                      const char *text);

/* Code and text of a REFUSED or RESET payload; whatever is not printable ASCII becomes '?'. */
void frame_get_note(const uint8_t *payload, size_t length, uint16_t *ret_code,
                    char ret_text[FRAME_TEXT_MAX + 1]);

uint16_t frame_u16(const uint8_t *p);
uint32_t frame_u32(const uint8_t *p);
uint64_t frame_u64(const uint8_t *p);
void frame_set_u16(uint8_t *p, uint16_t v);
void frame_set_u32(uint8_t *p, uint32_t v);
void frame_set_u64(uint8_t *p, uint64_t v);

const char *frame_type_name(unsigned type);       /* "DATA", "unknown" */
const char *frame_refusal_name(unsigned refusal); /* "expired", "unknown code" */
const char *frame_reset_name(unsigned reset);     /* "protocol", "unknown code" */
