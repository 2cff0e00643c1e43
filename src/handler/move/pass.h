/* One reconcile pass over one VMI: what is on this node for it, and what was remembered from
 * earlier passes. Belongs to the worker that has the VMI's key. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/object.h"
#include "handler/local/follow.h"
#include "handler/local/launcher_client.h"
#include "handler/local/launcher_status.h"
#include "handler/move/node_role.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "kube/recorder.h"
#include "kube/workers.h"

struct migration_net;

struct pass_node { /* this node; the same for all passes */
    struct kube_client *client;
    struct kube_informer *pods;
    struct kube_recorder *recorder;
    struct follow *follow; /* of launchers' events */
    const char *name, *address;
    struct migration_net *network;
    const char *pods_dir, *relay_socket;
    const char *records_dir; /* of flight records */
    int resume_window_s;     /* how long streams are held while their path is away */
};

/* May be forgotten at any time: everything that matters is in the API, launchers and relays. */
struct pass_memory {
    int64_t gone_since_ms, undecided_since_ms, progress_ms;
    int64_t recovered, recovered_ms; /* generation of streams that a post-copy went on over */
    int64_t asked, asked_ms;         /* generation of streams that the source waits for; since */
    int64_t told_ms;                 /* when the launcher was told of the target last */
    bool path_told_away;             /* what it was told of the path last, */
    int64_t path_told_ns;            /* and when; monotonic */
    char *disks_move, *disks;        /* of the move that is prepared here; see move_disks.h */
    char *ordered_move;              /* the move that a migration asks for, and its target */
    char *seen_move;                 /* the move that this node is the target of; since */
    int64_t seen_ms;
    int64_t trouble_ms; /* since when a step of a move does not work; 0 = it does */
    char *sync_error;
    bool host_model_known; /* the node said so once */
    bool source_clean;     /* no source sockets of this VMI are left; false = not known */
    char *patched_version; /* resourceVersion that was patched last */
    int64_t patched_ms;
    int64_t clock_ms; /* of the day, less that which nobody sets; 0 = before the first pass */
};

struct pass {
    const struct pass_node *node;
    struct pass_memory *memory;
    struct api_object *vmi;
    enum node_role role;
    char *pod_dir, *socket;        /* of the pod; NULL without one */
    struct launcher_at launcher;   /* at that socket */
    struct launcher_status status; /* when view.reach is UP */
    struct launcher_view view;
    char *pod_uid, *pod_reason;
    int64_t now_ms;
    int64_t again_ms; /* 0 = no need to look again by itself */
};

/* Finds the pod and asks its launcher. Never fails: what cannot be seen is part of the view. */
void pass_begin(struct pass *pass);
void pass_done(struct pass *pass);
/* Asks the launcher again, after it was told something. */
void pass_refresh(struct pass *pass);

/* Writes a patch (taken; NULL = nothing) to the VMI. */
int pass_patch(struct pass *pass, struct api_patch *patch_take, struct ferry_error *err);

void pass_memory_done(struct pass_memory *m);
/* Pure: the times in it are of the day. Told at each pass how far that is from a clock that nobody
 * sets, it moves them along with the day's, so that what has passed since stays what it was. */
void pass_memory_follow_clock(struct pass_memory *m, int64_t clock_ms);
