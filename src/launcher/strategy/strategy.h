/* What to do with a running migration, from what was measured. Pure.
 *
 * Two algorithms behind one interface, chosen by the policy:
 *  - ferry (strategy_ferry.c): models each round and acts as soon as it is clear that the move
 *    cannot finish in the time and downtime that the policy grants; and tells QEMU what the relay
 *    measures of the path (strategy_switchover.c), and slows down what the guest writes where KVM
 *    can (strategy_limit.c);
 *  - kubevirt (strategy_kubevirt.c): what KubeVirt does, for sites that want the same behaviour
 *    and for comparison.
 *
 * Neither does anything in post-copy (it can only finish) nor while an abort is on its way. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/wire/wire_launcher_status.h"
#include "api/wire/wire_options.h"

enum strategy_action {
    STRATEGY_KEEP,
    STRATEGY_SET_DOWNTIME,   /* what QEMU may take for the switch-over: `downtime_ms` */
    STRATEGY_LIMIT_WRITES,   /* of each vCPU, to `bytes_per_s` */
    STRATEGY_SET_SWITCHOVER, /* what the path carries then: `bytes_per_s`, 0 = QEMU's estimate */
    STRATEGY_POST_COPY,
    STRATEGY_PAUSE, /* stop the guest, then copy the rest */
    STRATEGY_FORCE, /* as pause, but QEMU stops it itself: `downtime_ms` is beyond any need */
    STRATEGY_ABORT_STUCK,
    STRATEGY_ABORT_NOT_CONVERGING,
    STRATEGY_ACTION_COUNT
};

enum { STRATEGY_DOWNTIME_UNLIMITED_MS = 2000000, STRATEGY_DOWNTIME_DEFAULT_MS = 300 };

struct strategy_ferry {
    int64_t now_ms;           /* effective: without the time that the path was away */
    int64_t seen_ms, away_ms; /* real time of the last pass; how long the path was away in all */
    int64_t moved_ms, moved;  /* when bytes were last sent, and how many by then */
    int64_t window_ms, window_processed; /* begin of the bandwidth window */
    int64_t bandwidth;                   /* on the wire, smoothed; 0 = not known yet */
    int64_t drain;                       /* how fast `remaining` fell within the last rounds */
    int64_t iteration;                   /* current round, */
    int64_t round_ms, round_remaining;   /* its begin and what remained then */
    int64_t low, low_ms;                 /* least that remained at the begin of a round, and when */
    int64_t rounds_since_low;
    int64_t hopeless;                     /* verdicts in a row that it cannot converge */
    int64_t downtime_ms, downtime_before; /* what QEMU was told */
    bool downtime_set;
};

enum { STRATEGY_CANDIDATES_MAX = 64 };

struct strategy_record {
    int64_t remaining, elapsed_ms;
};

struct strategy_kubevirt {
    int64_t watermark, progress_ms;
    int64_t downtime_ms, downtime_before, tuned_ms; /* tuning and the stall path's first call */
    bool downtime_set;
    /* stall detection */
    double bandwidth; /* 0 = not known yet */
    int64_t iteration;
    struct strategy_record candidates[STRATEGY_CANDIDATES_MAX];
    int n_candidates;
    int64_t min_outside; /* 0 = none */
    bool stalled, switching;
    int64_t best, patience_ms, relax_ms;
    int64_t history[STRATEGY_CANDIDATES_MAX];
    int n_history;
    int64_t acceptable_ms, switchover_deadline_ms;
};

enum { STRATEGY_MEASUREMENTS = 3 };

struct strategy_switchover {
    int64_t measured[STRATEGY_MEASUREMENTS]; /* a ring of the latest; `n` of them hold */
    int n, next;
    int64_t measured_ms;       /* when the latest was taken */
    int64_t told, told_before; /* what QEMU was told; 0 = nothing */
    bool was_measured, refused;
};

struct strategy_limit {
    int64_t iteration, remaining; /* current round, and what remained at its begin */
    int64_t mib_per_s;            /* that each vCPU may write; 0 = as it likes */
    bool refused;
};

/* What is remembered from look to look. Zeroed at the start of a migration. */
struct strategy_memory {
    bool started;
    enum strategy_action last;
    struct strategy_ferry ferry;
    struct strategy_kubevirt kubevirt;
    struct strategy_switchover switchover;
    struct strategy_limit limit;
};

struct strategy_input {
    const struct wire_options *policy;
    int64_t data_bytes; /* memory and disks that are to be moved */
    int64_t elapsed_ms; /* since the migration was asked for */
    enum wire_mode mode;
    int64_t limited_vcpus; /* whose writes can be limited, instead of auto-converge; 0 = none */
    bool aborting;         /* an abort is on its way */
    bool vfio;             /* a device whose memory cannot be fetched later */
    bool path_away;        /* the transport bridges an outage */
    bool last_failed;      /* libvirt or QEMU refused the last action */
    /* What this move has of the path, and `elapsed_ms` when that was measured; 0 = not known. */
    int64_t path_bytes_per_s, path_measured_ms;
    struct launcher_sample sample;
};

struct strategy_decision {
    enum strategy_action action;
    int64_t downtime_ms; /* of SET_DOWNTIME and FORCE */
    int64_t bytes_per_s; /* of SET_SWITCHOVER and LIMIT_WRITES */
    char why[256];       /* in words and numbers; "" for keep */
};

void strategy_decide(const struct strategy_input *in, struct strategy_memory *memory,
                     struct strategy_decision *ret);
/* "set-downtime", ... */
const char *strategy_action_name(enum strategy_action action);
