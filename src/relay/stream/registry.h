/* The streams of a move that a target knows: those that run and what remains of those that ran.
 *
 * A connection that has said HELLO is brought here; one lock makes looking the stream up, deciding
 * and acting on it one step, so that two connections for one stream cannot both be the first. Any
 * thread. */
#pragma once

#include <stdint.h>

#include "relay/common/net.h"
#include "relay/protocol/hello.h"
#include "relay/state/state.h"
#include "tls/conn.h"

struct relay_registry;
struct relay_live; /* a stream that runs */

/* A proven connection and what it asked for. */
struct relay_arrival {
    int fd;
    struct tls_conn *tls;
    struct hello hello;
    char peer[RELAY_NET_NAME];
};

/* NULL: no descriptor left. */
struct relay_registry *relay_registry_new(void);
void relay_registry_free(struct relay_registry *r);

/* Fills in what `facts` says of streams, and decides. HELLO_START: `*ret_live` is the new stream's
 * place, to be given up with relay_registry_leave(). HELLO_ATTACH: `arrival` was taken and its
 * stream woken. Else `*ret_answer` and `*ret_length` are what to send before closing. */
enum hello_verdict relay_registry_greet(struct relay_registry *r, struct relay_arrival *arrival,
                                        struct hello_facts *facts, const uint8_t instance[FRAME_ID],
                                        struct relay_live **ret_live,
                                        struct hello_refusal *ret_refusal,
                                        uint8_t answer[HELLO_ANSWER_MAX], size_t *ret_length);

/* A place for a stream that was taken over from another process. NULL: no descriptor left. */
struct relay_live *relay_registry_restore(struct relay_registry *r, const uint8_t id[FRAME_ID],
                                          const char *move, uint32_t channel, uint64_t epoch);
/* Gives a place up without leaving a trace: as if its stream had never been. */
void relay_registry_abandon(struct relay_registry *r, struct relay_live *l);
/* What remains of streams that are over; `*ret` is the caller's. Returns how many there are. */
size_t relay_registry_tombs(struct relay_registry *r, struct relay_state_tomb **ret);
void relay_registry_bury(struct relay_registry *r, const struct relay_state_tomb *t);

/* Readable when a connection has arrived. */
int relay_live_fd(const struct relay_live *l);
/* Whether one had; it is the caller's now. */
bool relay_live_take(struct relay_live *l, struct relay_arrival *ret);
/* After an arrival was attached. */
void relay_live_attached(struct relay_live *l, uint64_t epoch);

/* Frees `l`; `t` is remembered until `until_ns`. A connection that arrived too late is refused in
 * words that make it come again. */
void relay_registry_leave(struct relay_registry *r, struct relay_live *l,
                          const struct hello_tombstone *t, int64_t until_ns);

/* Sends a last answer, as far as the socket takes it at once, and closes. */
void relay_arrival_answer(struct relay_arrival *a, const uint8_t *answer, size_t n);
