/* The first frame of a connection, and what a target does about it. Pure.
 *
 * The target's accepting side reads a HELLO (16 bytes, then as many as they announce), looks the
 * stream up, and asks hello_decide(). Nothing is dialled on the hypervisor's side unless the
 * verdict is HELLO_START. A HELLO_ATTACH is still subject to protocol_attach(), which knows the
 * offsets; whatever is refused leaves the stream that is there untouched. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relay/protocol/frame.h"

struct hello {
    bool resume; /* else NEW */
    uint8_t id[FRAME_ID];
    uint64_t epoch;
    char move[FRAME_MOVE_MAX + 1];
    uint32_t channel;
    uint64_t delivered; /* the source's; FIN counts as one */
    uint32_t window;    /* what the source takes beyond it */
};

/* What is answered instead of a HELLO-OK. */
struct hello_refusal {
    enum frame_refusal code;
    char text[FRAME_TEXT_MAX + 1];
};

/* What remains of a stream that is over, for at least its resume window. */
struct hello_tombstone {
    uint8_t id[FRAME_ID];
    char move[FRAME_MOVE_MAX + 1];
    uint32_t channel;
    uint64_t epoch;
    bool finished; /* both directions to their end; else `refusal` says what became of it */
    uint64_t delivered, sent; /* final sequence numbers when finished */
    struct hello_refusal refusal;
};

/* Whether it has the letters and the length of a move uid. */
bool hello_move_good(const char *move);

/* Whole frame, returns its length (at most FRAME_HELLO_MAX). */
size_t hello_put(uint8_t *buf, const struct hello *h);

/* Bytes of a HELLO that must be there before hello_get() can say more about the `have` bytes at
 * `buf`; 0 when there are enough. Never above FRAME_HELLO_MAX. */
size_t hello_need(const uint8_t *buf, size_t have);
/* The HELLO in the first bytes; `have` so many that hello_need() returned 0. A frame that is not a
 * good HELLO is refused. */
int hello_get(const uint8_t *buf, size_t have, struct hello *ret,
              struct hello_refusal *ret_refusal);

enum hello_known { HELLO_KNOWN_NOT, HELLO_KNOWN_LIVE, HELLO_KNOWN_GONE };

/* What the target knows when a HELLO comes in. */
struct hello_facts {
    bool move_known;     /* a listener for this move is here */
    bool peer_is_source; /* the certificate names the source node of that move */
    bool channel_open;   /* the move has this channel, and the connection came in on its port */
    bool channel_taken;  /* the channel takes no further stream now */
    bool accepting;      /* neither draining nor at the limit of streams */
    enum hello_known known;
    /* Of a live stream: */
    const char *live_move;
    uint32_t live_channel;
    uint64_t live_epoch;
    bool live_same_peer; /* opened by the node that now asks */
    /* Of one that is over: */
    const struct hello_tombstone *tombstone;
};

enum hello_verdict {
    HELLO_START,    /* dial the unix socket, then protocol_new_target() */
    HELLO_ATTACH,   /* protocol_attach() on the stream's own thread */
    HELLO_FINISHED, /* hello_put_finished(), then close */
    HELLO_REFUSE,   /* hello_put_refused(), then close */
};

enum hello_verdict hello_decide(const struct hello *h, const struct hello_facts *facts,
                                struct hello_refusal *ret_refusal);

/* Answers for connections that get no stream; each returns the length. */
enum { HELLO_ANSWER_MAX = FRAME_HEADER + FRAME_NOTE_MAX };
size_t hello_put_refused(uint8_t *buf, const struct hello_refusal *refusal);
size_t hello_put_finished(uint8_t *buf, const struct hello_tombstone *t,
                          const uint8_t instance[FRAME_ID]);

void hello_refuse(struct hello_refusal *refusal, enum frame_refusal code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
