/* Inside of relay/protocol: shared by protocol.c (life of a stream), protocol_time.c (what ends by
 * itself), protocol_recv.c (what comes in from the peer) and protocol_send.c (what goes out).
 * Nobody else includes it. */
#pragma once

#include "relay/protocol/protocol.h"
#include "relay/protocol/segments.h"
#include "relay/protocol/window.h"

enum protocol_conn {
    PROTOCOL_CONN_NONE,
    PROTOCOL_CONN_HELLO, /* source: not yet answered; target: not yet to be answered */
    PROTOCOL_CONN_UP,
};

/* The last frame of a stream, sent when nothing else will be. */
enum protocol_final {
    PROTOCOL_FINAL_NONE,
    PROTOCOL_FINAL_RESET,
    PROTOCOL_FINAL_ECHO,
    PROTOCOL_FINAL_REFUSED,
    PROTOCOL_FINAL_HELLO_OK,
    PROTOCOL_FINAL_ACK,
};

enum {
    PROTOCOL_INLINE = 4096, /* payloads below this go out together with their header */
    PROTOCOL_SCRATCH = 4096,
    PROTOCOL_ALIGN_FROM = 4096, /* received payloads from this size on are aligned */
};

/* From the unix socket to the peer. Sequence numbers count bytes, and FIN as one. */
struct protocol_out {
    struct segments store; /* read, not acknowledged: [acked, end) */
    uint32_t max;          /* bytes to hold at most, now */
    bool eof;              /* no more bytes; FIN has the number store.end */
    uint64_t acked;        /* delivered at the peer */
    uint64_t next;         /* to be sent on this connection */
    uint64_t sent;         /* behind the highest number ever sent */
    uint64_t limit;        /* the peer takes bytes below this */
    uint64_t replayed;
    /* The frames being sent: a buffer, then perhaps payload from the store. */
    uint8_t buf[PROTOCOL_INLINE + 512];
    size_t len, pos;
    const uint8_t *payload;
    size_t payload_len;
    uint64_t payload_offset; /* in the stream: what is not to be released */
};

/* From the peer to the unix socket. */
struct protocol_in {
    struct segments store; /* received, not delivered */
    uint64_t written;      /* bytes delivered */
    bool fin, fin_done;    /* FIN received; shut down towards the unix side */
    bool discard;          /* nobody takes the bytes any more */
    uint64_t told;         /* delivered, as the peer last heard */
    uint64_t limit;        /* end of the largest window granted */
    int64_t ack_at;
    bool ack_now;
    struct window window;
    /* The frame being received. */
    uint8_t head[FRAME_HEADER];
    size_t head_len;
    struct frame frame;
    bool in_payload;
    size_t skip, left; /* of DATA: duplicate bytes, then new bytes */
    uint8_t note[FRAME_NOTE_MAX];
    size_t note_len;
    uint8_t scratch[PROTOCOL_SCRATCH];
};

struct protocol {
    struct protocol_config config;
    bool target;
    enum protocol_state state;
    struct protocol_outcome outcome;

    enum protocol_conn conn;
    bool drop;       /* the connection is of no more use */
    bool hello_sent; /* on this connection: HELLO or HELLO-OK */
    bool answered;   /* on this connection: HELLO-OK or REFUSED came */
    bool confirmed;  /* both sides know the stream */
    bool resume;     /* what the next HELLO says */
    uint64_t epoch, resumes;
    int64_t conn_at, heard_at, moved_at, born_at, away_at, over_at;
    int64_t dial_at, redial_ns;
    char why[128]; /* the last connection or dial ended */

    enum protocol_final final;
    bool reset_now;  /* in LINGER: do not send what is left first */
    bool reset_sent; /* on this connection */
    bool no_memory;
    bool sink_failed;
    int64_t sink_at;
    char sink_text[FRAME_TEXT_MAX + 1];

    bool ping_due, ping_out, pong_due;
    uint64_t ping_token, pong_token;
    int64_t ping_at;

    struct protocol_out out;
    struct protocol_in in;
};

static inline uint64_t protocol_produced(const struct protocol *p)
{
    return p->out.store.end + (p->out.eof ? 1 : 0);
}

static inline uint64_t protocol_delivered(const struct protocol *p)
{
    return p->in.written + (p->in.fin_done ? 1 : 0);
}

static inline bool protocol_unix_live(const struct protocol *p)
{
    return p->state == PROTOCOL_OPEN || p->state == PROTOCOL_AWAY;
}

/* protocol.c */
struct protocol *protocol_make(const struct protocol_config *config, int64_t now);
void protocol_close(struct protocol *p);
void protocol_set_outcome(struct protocol *p, enum protocol_end end, unsigned code, bool by_peer,
                          const char *text);
/* The peer broke a rule: the stream ends now. */
void protocol_violation(struct protocol *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The unix side is over before its time: what is left goes out, then RESET. */
void protocol_break_off(struct protocol *p, enum frame_reset code, const char *text, int64_t now);
/* FINISHED or LINGER once both directions are through. */
void protocol_check_done(struct protocol *p, int64_t now);
void protocol_check_drained(struct protocol *p);

/* protocol_recv.c */
void protocol_in_reset(struct protocol_in *in); /* a connection is gone */

/* protocol_send.c */
void protocol_out_reset(struct protocol *p);
void protocol_out_release(struct protocol *p);
/* What the peer has delivered and takes; NULL, or what is wrong with it. */
const char *protocol_out_acked(struct protocol *p, uint64_t delivered, uint32_t window);
uint32_t protocol_in_grant(struct protocol *p);
