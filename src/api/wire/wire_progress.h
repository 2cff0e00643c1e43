/* How far a move is: the annotation ferry.io/progress of its VM. Written by the source's handler
 * about once a second, read by the controller, the target's handler, the API server and people.
 * Pure. */
#pragma once

#include "api/wire/wire_json.h"

struct launcher_sample; /* wire_launcher_status.h */

enum { WIRE_MODE = 16 };

struct wire_progress {
    char uid[WIRE_UID];   /* of the move */
    char mode[WIRE_MODE]; /* "PreCopy", "Paused", "PostCopy"; "" = not told */
    bool done;            /* the source's side of it is over: the guest left */
    bool path_away;       /* the transport waits for the way to the target */
    int64_t downtime_ms;  /* that the guest stood still; -1 = not known (yet) */
    /* What the hypervisor's job says; 0 = not told. */
    bool has_figures;
    int64_t elapsed_ms, total_bytes, processed_bytes, remaining_bytes;
    int64_t bytes_per_s, dirty_bytes_per_s;
    int64_t iteration, expected_downtime_ms, throttle_percent;
    int64_t disk_total_bytes, disk_remaining_bytes; /* of these, disks that are copied */
};

/* False when there is nothing to be read; then `ret` is zero but for `downtime_ms`. */
bool wire_progress_read(const char *text, struct wire_progress *ret);
/* The same, when it is about the move `uid`: what stands there may be of an earlier one. */
bool wire_progress_of(const char *text, const char *uid, struct wire_progress *ret);
/* The figures of what a launcher tells; none when it has none. */
void wire_progress_figures(const struct launcher_sample *sample, struct wire_progress *ret);
/* The text, the caller's; NULL when `mode` or `uid` is no text. */
char *wire_progress_text(const struct wire_progress *p);
