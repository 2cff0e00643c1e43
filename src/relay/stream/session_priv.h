/* Inside of relay/session: shared by session.c (the loop), session_log.c (what is told of it) and
 * greet.c (a target's beginning). Nobody else includes it. */
#pragma once

#include "relay/protocol/protocol.h"
#include "relay/stream/link.h"
#include "relay/stream/session.h"
#include "relay/stream/spin.h"

/* The text of a RESET by which both relays know that a process closed its socket, and nothing
 * failed. */
#define SESSION_LEFT "the process at the unix socket closed it"

struct session {
    const struct relay_stream *s;
    struct protocol *p;
    struct relay_link link;
    struct relay_live *live; /* target */
    int unix_fd;             /* -1 when over */
    bool has_slot;
    bool woken;              /* another connection has arrived */
    bool readable, writable; /* unix: worth trying */
    uint32_t share;          /* of the relay's memory, for each direction */
    unsigned denials;        /* version of the list by which the peer was judged last */
    size_t burst;            /* bytes moved at the unix socket since the last wait */
    struct relay_spin spin;
    bool eof;  /* read from the unix side */
    bool deaf; /* the unix side takes no more */
    bool hup;  /* it has left */
    bool left; /* and that was looked at */
    bool stopping, parking, opened;
    int64_t leave_ns; /* at the latest, once stopping or parking */
    int64_t born_ns, refused_ns, stats_ns;
    int64_t rate_ns; /* not to be read before */
    uint64_t dropped, stats_in, stats_out, resumes;
    enum protocol_state state; /* as last told */
};

/* session.c */
struct session *session_new(const struct relay_stream *s);
/* Gives everything up that is in `x`. */
void session_finish(struct session *x);
void session_config(const struct relay_stream *s, struct protocol_config *ret);

/* session_log.c */
void session_tell_left(struct session *x);     /* the process, while the stream is away or opens */
void session_tell_restored(struct session *x); /* from here on it is told as before */
void session_tell_changes(struct session *x, int64_t now);
void session_tell_end(struct session *x);
