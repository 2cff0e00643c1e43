/* Ordinary life of a VM on its node: what to tell its launcher and what to write. Pure. */
#pragma once

#include <stdint.h>

#include "api/object.h"
#include "handler/local/launcher_status.h"
#include "handler/owner/owner_news.h"

struct owner_input {
    const struct api_vmi *vmi;
    struct launcher_view launcher;
    int64_t gone_since_ms;  /* since when a running VM's guest has not been seen; 0 = it is seen */
    const char *sync_error; /* why the last PUT /v1/vm failed, or NULL */
    bool host_model_known;  /* the node says which CPU host-model is here */
    int64_t now_ms;
};

enum owner_action {
    OWNER_NOTHING,
    OWNER_SYNC,   /* PUT /v1/vm */
    OWNER_STOP,   /* DELETE /v1/vm with grace_s */
    OWNER_CANCEL, /* cancel the migration `cancel_uid`: the site has given it up */
};

struct owner_decision {
    enum owner_action action;
    int64_t grace_s;
    const char *cancel_uid;
    struct api_patch *patch; /* to be written before the action; or NULL; the caller's */
    bool not_evictable;      /* news: eviction shall move it, and it cannot be moved */
    bool guest_missing;      /* gone_since_ms is to be kept or set */
    struct owner_news news;  /* events, once the patch is written */
    int64_t again_ms;        /* look again after that long */
};

struct owner_decision owner_decide(const struct owner_input *in);
