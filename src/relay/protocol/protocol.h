/* Ferry stream protocol 1: one end of one stream, as a state machine without I/O, clock or locks.
 *
 * A stream joins a unix connection on the source node with one on the target node and survives the
 * TCP connections that carry it. docs/stream-protocol.md specifies what goes over the wire; this
 * page is the contract with the shell: the code that owns the sockets and calls in here. All calls
 * for one stream come from one thread. `now` is the monotonic clock in nanoseconds, never running
 * backwards. Nothing blocks; nothing is allocated but the blocks of the two segment stores.
 *
 * The shell's loop, in this order:
 *
 *   1. connection readable: until EAGAIN,
 *          n = SSL_read(protocol_recv_space(p, &where)); protocol_received(p, n, now)
 *      recv_space never asks for more than the current header or payload needs, so payload goes
 *      straight to aligned memory from which it is written to the unix socket. The connection is
 *      always read, also while the unix socket takes nothing: the window bounds what can come.
 *      EOF, error or close_notify: close it, protocol_disconnected().
 *   2. unix socket writable: writev(protocol_write_vec()), protocol_unix_written();
 *      then, if protocol_shutdown_due(), shutdown(SHUT_WR) and protocol_shutdown_done().
 *      EPIPE/ECONNRESET: protocol_unix_write_failed().
 *   3. unix socket readable and protocol_read_space() > 0: read() into it, protocol_unix_read();
 *      0 bytes: protocol_unix_eof(); error: protocol_unix_failed(). No space: do not poll it for
 *      reading. Not reading more than this (a rate limit, say) is always allowed.
 *   4. protocol_tick(). After 1: bytes that waited while this process was stopped count as
 *      signs of life only when they are taken in first.
 *   5. while protocol_output() gives something: SSL_write it (both parts one after the other, the
 *      first is small), protocol_sent(). What was given once stays the same, at the same place,
 *      until it was sent or the connection is gone, so SSL_write may be retried. Collect in the
 *      BIO, send when there is no more or 256 KiB are together.
 *   6. protocol_hangup(): DROP: close the connection, protocol_disconnected(). FLUSH: once the
 *      output is empty, SSL_shutdown, shutdown(SHUT_WR), read to EOF, close; with a deadline of
 *      some seconds for all of it. Closing with unread bytes would destroy what was sent last.
 *   7. protocol_unix_over(): close the unix socket. State CLOSED and the connection gone: free;
 *      a target keeps protocol_tombstone() for the resume window plus PROTOCOL_GRACE.
 *   8. source without connection: dial when protocol_dial_at() has come and call
 *      protocol_dialling(); then (deadline for connect and TLS handshake: 5 s)
 *      protocol_connected() or protocol_disconnected().
 *   9. sleep in poll() until protocol_deadline() at the latest.
 *
 * A target reads the HELLO of a new connection itself (relay/protocol/hello.h). HELLO_START:
 * protocol_new_target() at once, so that a second HELLO finds the stream, then dial the unix
 * socket (deadline 5 s) and call protocol_unix_connected() or protocol_unix_refused(). Only then is
 * the HELLO answered. HELLO_ATTACH: hand connection and HELLO to the stream's thread, which calls
 * protocol_attach(); refused: answer on the new connection, go on with the old one; else close the
 * old one without protocol_disconnected().
 *
 * Pointers from recv_space and read_space are good until the next call on the same stream; those
 * from write_vec until protocol_unix_written(). Memory of one stream never exceeds
 * protocol_memory_max(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "relay/protocol/frame.h"
#include "relay/protocol/hello.h"
#include "relay/protocol/pack.h"

#define PROTOCOL_PING (2 * FERRY_NS_PER_S)    /* silence before a PING */
#define PROTOCOL_DEAD (8 * FERRY_NS_PER_S)    /* silence that ends a connection */
#define PROTOCOL_ANSWER (10 * FERRY_NS_PER_S) /* wait for HELLO-OK or REFUSED */
#define PROTOCOL_ACK_DELAY (20 * FERRY_NS_PER_MS)
#define PROTOCOL_GRACE (10 * FERRY_NS_PER_S) /* the target waits this much longer */
#define PROTOCOL_DRAIN (10 * FERRY_NS_PER_S) /* for a unix side that does not take the rest */
#define PROTOCOL_REDIAL_MIN (50 * FERRY_NS_PER_MS)
#define PROTOCOL_REDIAL_MAX (2 * FERRY_NS_PER_S)
#define PROTOCOL_RESUME_MAX (240 * FERRY_NS_PER_S)
#define PROTOCOL_HOLD INT64_MAX /* as a resume window: never expire */
#define PROTOCOL_NEVER INT64_MAX

enum {
    PROTOCOL_ACK_BYTES = 512 << 10,
    PROTOCOL_WINDOW_START = 1 << 20,
    PROTOCOL_WINDOW_CEILING = 8 << 20,
    PROTOCOL_BLOCK = 256 << 10,
};

enum protocol_state {
    PROTOCOL_OPENING,  /* source: not yet answered; target: unix socket not yet connected */
    PROTOCOL_OPEN,     /* bytes flow */
    PROTOCOL_AWAY,     /* no connection; the unix socket is held */
    PROTOCOL_DRAINING, /* the peer reset the stream: the unix side gets what came before */
    PROTOCOL_LINGER,   /* the unix side is over; the peer has to learn it */
    PROTOCOL_CLOSED,
    PROTOCOL_STATE_COUNT
};

enum protocol_end {
    PROTOCOL_FINISHED,    /* both directions to their end, all delivered */
    PROTOCOL_RESET,       /* code: enum frame_reset */
    PROTOCOL_REFUSED,     /* code: enum frame_refusal; by the target, nothing was carried since */
    PROTOCOL_EXPIRED,     /* the connection stayed away longer than the resume window */
    PROTOCOL_STATE_LOST,  /* the target relay no longer has the stream */
    PROTOCOL_UNREACHABLE, /* never opened */
    PROTOCOL_END_COUNT
};

struct protocol_outcome {
    enum protocol_end end;
    unsigned code;
    bool by_peer;
    char text[FRAME_TEXT_MAX + 1];
};

struct protocol_config {
    uint8_t id[FRAME_ID];          /* source: random, not all zero; target: from the HELLO */
    char move[FRAME_MOVE_MAX + 1]; /* source only; likewise */
    uint32_t channel;
    uint8_t instance[FRAME_ID]; /* target only: random, of this relay process and its successors */
    int64_t resume_window_ns;   /* up to PROTOCOL_RESUME_MAX, or PROTOCOL_HOLD */
    int64_t open_timeout_ns;    /* source: from the first call to HELLO-OK */
    uint32_t window_start;      /* what the peer may send: grows from this */
    uint32_t window_max;        /* to this */
    uint32_t send_max;          /* bytes kept for replay, whatever window the peer grants */
    uint32_t block_size;        /* of segment memory */
};

/* Everything but the ids and names: 240 s, 30 s and the sizes above. */
void protocol_config_defaults(struct protocol_config *config);

struct protocol;

struct protocol *protocol_new_source(const struct protocol_config *config, int64_t now);
/* For a HELLO with the verdict HELLO_START; its connection is attached. */
struct protocol *protocol_new_target(const struct protocol_config *config, const struct hello *h,
                                     int64_t now);
struct protocol *protocol_free(struct protocol *p); /* returns NULL */
FERRY_DEFINE_CLEANUP(struct protocol *, protocol_free)

/* Handing a stream over to another process (protocol_state.c). */
enum { PROTOCOL_STATE_VERSION = 1 };
/* All of it but its connection, as if that were lost at `now`; `p` stays as it is. Not in CLOSED,
 * nor a target in OPENING: what is over is told by a tombstone, what has not begun begins anew. */
void protocol_export(const struct protocol *p, int64_t now, struct pack *k);
/* Refuses what protocol_export() cannot have written. A source dials at once. */
int protocol_import(struct unpack *u, int64_t now, struct protocol **ret, struct ferry_error *err);

/* Whether it is that end of a stream of that move and channel. */
bool protocol_belongs(const struct protocol *p, bool target, const char *move, uint32_t channel);
const uint8_t *protocol_id(const struct protocol *p); /* FRAME_ID bytes */

/* The connection. */
int64_t protocol_dial_at(const struct protocol *p); /* PROTOCOL_NEVER: none is wanted */
void protocol_dialling(struct protocol *p);         /* one is under way: ask for no other */
void protocol_connected(struct protocol *p, int64_t now);
void protocol_disconnected(struct protocol *p, int64_t now, const char *why);
/* Source: no connection will ever come about (who answers is not the target, or nobody will).
 * Before the stream opened this ends it as unreachable, afterwards as lost. */
void protocol_give_up(struct protocol *p, const char *why);
/* Why the last connection or dial ended. */
const char *protocol_why(const struct protocol *p);
/* 0, or a negative class and the refusal; then nothing has changed. */
int protocol_attach(struct protocol *p, const struct hello *h, int64_t now,
                    struct hello_refusal *ret_refusal);

size_t protocol_recv_space(struct protocol *p, void **ret);
void protocol_received(struct protocol *p, size_t n, int64_t now);
/* Number of parts filled, 0 = nothing to send. */
int protocol_output(struct protocol *p, int64_t now, struct iovec parts[2]);
void protocol_sent(struct protocol *p, size_t n);

enum protocol_hangup { PROTOCOL_KEEP, PROTOCOL_DROP, PROTOCOL_FLUSH };
enum protocol_hangup protocol_hangup(const struct protocol *p);

/* The unix socket. */
void protocol_unix_connected(struct protocol *p, int64_t now);                 /* target */
void protocol_unix_refused(struct protocol *p, const char *text, int64_t now); /* target */
size_t protocol_read_space(struct protocol *p, void **ret);
void protocol_unix_read(struct protocol *p, size_t n);
void protocol_unix_eof(struct protocol *p, int64_t now);
int protocol_write_vec(const struct protocol *p, struct iovec *vec, int max);
void protocol_unix_written(struct protocol *p, size_t n, int64_t now);
bool protocol_shutdown_due(const struct protocol *p);
void protocol_shutdown_done(struct protocol *p, int64_t now);
/* Whether that was done. */
bool protocol_shutdown_passed(const struct protocol *p);
/* The unix peer takes no more. What it wrote before is still read and sent (keep reading), then the
 * stream is reset. */
void protocol_unix_write_failed(struct protocol *p, const char *text, int64_t now);
/* The unix socket is broken. What was read from it is sent, then the stream is reset. */
void protocol_unix_failed(struct protocol *p, const char *text, int64_t now);
bool protocol_unix_over(const struct protocol *p);

/* Ends the stream now; bytes not yet sent are dropped. */
void protocol_cancel(struct protocol *p, const char *text, int64_t now);
/* The same, and the peer is not even told: there is nobody there who may know. Disconnected. */
void protocol_part(struct protocol *p, const char *text);

void protocol_tick(struct protocol *p, int64_t now);
int64_t protocol_deadline(const struct protocol *p);
/* Lowering it below the bytes in flight has its effect as they are delivered. */
void protocol_set_window_max(struct protocol *p, uint32_t bytes);
/* Likewise of the bytes kept for replay: no more are read until there is room. */
void protocol_set_send_max(struct protocol *p, uint32_t bytes);
void protocol_set_resume_window(struct protocol *p, int64_t window_ns);

enum protocol_state protocol_state(const struct protocol *p);
const char *protocol_state_name(enum protocol_state state);
/* Meaningful from DRAINING and LINGER on, final in CLOSED. */
const struct protocol_outcome *protocol_outcome(const struct protocol *p);
const char *protocol_end_name(enum protocol_end end);
/* In CLOSED. */
void protocol_tombstone(const struct protocol *p, struct hello_tombstone *ret);

struct protocol_stats {
    uint64_t epoch;             /* of the last connection */
    uint64_t resumes;           /* connections after the first */
    uint64_t read, acked;       /* from the unix socket; of these delivered at the peer */
    uint64_t received, written; /* from the peer; of these to the unix socket */
    uint64_t replayed;          /* bytes sent more than once */
    int64_t away_since;         /* in AWAY */
    int64_t rtt_ns;             /* shortest of this connection, 0 = not known */
    double rate_in;             /* bytes per second written to the unix socket, last measurement */
    uint32_t window;            /* granted to the peer */
    size_t memory;
};
void protocol_stats(const struct protocol *p, struct protocol_stats *ret);
size_t protocol_memory_max(const struct protocol *p);
