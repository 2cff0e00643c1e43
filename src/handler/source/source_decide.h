/* The node a guest is leaving: the next step of the move, one at a time. Pure.
 *
 * Everything is derived anew on each pass, from the VMI, the launcher and the relay: a handler that
 * was restarted in the middle goes on as if nothing had happened. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/object.h"
#include "handler/local/launcher_status.h"
#include "handler/move/move_trouble.h"
#include "handler/source/source_order.h"

struct source_input {
    const struct api_vmi *vmi; /* role: source */
    struct launcher_view launcher;
    enum source_order order;     /* whether a migration asks for this */
    const char *order_lacks;     /* why none does */
    bool relay_ready;            /* the relay leads to what the target published */
    struct move_trouble trouble; /* what this node could not do during this pass */
    bool cancelled;              /* a cancel was sent during this pass */
    int64_t undecided_since_ms;  /* since when nothing tells where the guest is; 0 = it is known */
    int64_t recovered;           /* generation that the move went on over, as far as remembered */
    int64_t recovered_ms;        /* when */
    bool recover_failed;         /* going on failed during this pass */
    int64_t progress_ms;         /* when progress was written last */
    bool path_away;              /* the relay waits for the way to the target */
    int64_t now_ms;
};

enum source_action {
    SOURCE_NOTHING,
    SOURCE_ASK,     /* whether a migration asks for this; then again */
    SOURCE_CONNECT, /* sockets in the source pod that lead to the target; then again */
    SOURCE_START,   /* PUT /v1/migrations/UID; then again */
    SOURCE_RECOVER, /* POST /v1/migrations/UID/recover over the ports of that generation */
    SOURCE_CANCEL,  /* POST /v1/migrations/UID/cancel; then again */
};

struct source_decision {
    enum source_action action;
    struct api_patch *patch; /* or NULL; the caller's */
    bool progress;           /* the patch carries progress */
    bool undecided;          /* undecided_since_ms is to be kept or set */
    enum wire_reason failed; /* when the patch ends the move in failure */
    int64_t again_ms;
};

struct source_decision source_decide(const struct source_input *in);

/* Options for PUT /v1/migrations/UID from the frozen policy, and the measured rate of the path (0 =
 * not known); JSON, the caller's. */
char *source_options(const struct api_vmi *vmi, int64_t path_bytes_per_s);
