/* The node a guest comes to: the next step of the move, one at a time. Pure, and derived anew on
 * each pass, as on the source. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/object.h"
#include "handler/local/launcher_status.h"
#include "handler/local/relay_client.h"
#include "handler/move/move_trouble.h"

enum target_withdrawn {
    TARGET_NOT_ASKED,
    TARGET_WITHDRAWN, /* its guest never ran and never will */
    TARGET_KEPT, /* it cannot promise that: the guest was started there, or it does not answer */
    TARGET_NOT_ABLE, /* it knows nothing of the move, or not of such a promise */
};

struct target_input {
    const struct api_vmi *vmi; /* role: target */
    const char *node;
    struct launcher_view launcher;
    struct target_relay relay;
    const char *disks; /* what of the guest's disks is to be copied, as JSON; NULL = nothing */
    int64_t seen_ms;   /* since when the move is known here, as far as remembered */
    int64_t asked_ms;  /* since when fresh streams are asked for, as far as remembered; 0 = not */
    struct move_trouble trouble;     /* what this node could not do during this pass */
    bool recovered;                  /* the launcher takes fresh streams: done during this pass */
    enum target_withdrawn withdrawn; /* what the launcher answered to that during this pass */
    bool unlistened;                 /* the relay was told to forget the move during this pass */
    bool finalized;                  /* the launcher was finalised during this pass */
    int64_t now_ms;
};

enum target_action {
    TARGET_NOTHING,
    TARGET_PREPARE,  /* PUT /v1/target/UID; then again */
    TARGET_RECOVER,  /* POST /v1/migrations/UID/recover; then again */
    TARGET_LISTEN,   /* listeners of the relay; then again */
    TARGET_FINALIZE, /* POST /v1/migrations/UID/finalize; then again */
    TARGET_WITHDRAW, /* POST /v1/migrations/UID/withdraw; then again */
    TARGET_UNLISTEN, /* the relay forgets the move; then again */
};

enum target_event {
    TARGET_NO_EVENT,
    TARGET_PUBLISHED, /* address and ports are in the VMI */
    TARGET_OWNED,     /* the guest lives here now */
    TARGET_COMPLETED,
    TARGET_FAILED,
    TARGET_REFUSED, /* failed, because this node will never take it */
};

struct target_decision {
    enum target_action action;
    struct api_patch *patch; /* only with TARGET_NOTHING; or NULL; the caller's */
    enum target_event event; /* when the patch is written */
    int64_t again_ms;
};

struct target_decision target_decide(const struct target_input *in);
