/* Which waiting migrations may start: limits of cluster and nodes over the queue in order. Pure: a
 * ledger of all moves that are not over, told of every change by its owner, who also locks.
 *
 * Free places go to the waiting in order of priority, then age; one that a node's limit holds back
 * does not hold back those behind it. The answer for a migration follows from what was put into the
 * ledger alone, so workers that ask about different migrations do not give a place away twice. An
 * answer costs O(log n). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/wire/wire_reason.h"

struct migration_limits {
    unsigned cluster, outbound_per_node; /* KubeVirt: 5 and 2 */
    unsigned inbound_per_node;           /* ours: 2 */
    int64_t bandwidth_per_node;          /* ours: bytes/s of all moves of a node; 0 = no budget */
};

/* One migration that is not final. Strings are copied. */
struct limits_move {
    const char *uid, *key;   /* key: "namespace/name" */
    const char *source_node; /* that it leaves or will leave; NULL = not known */
    const char *target_node; /* of its target pod; NULL = not known */
    int priority;
    int64_t created_ms;
    int64_t memory;    /* of the guest, in bytes */
    int64_t bandwidth; /* bytes/s that it may use; 0 = all there is */
    bool active;       /* has a target pod, or its phase says so */
    bool handed_off;   /* the nodes act on it */
    bool ready;        /* nothing but the limits keeps it waiting */
};

struct limits_answer {
    bool start;
    bool room;                /* places are left over, even for one that is not counted as ready */
    enum wire_reason reason;  /* REASON_CLUSTER_LIMIT, REASON_OUTBOUND_LIMIT,
                               * REASON_BANDWIDTH_BUDGET; none when it may start */
    const char *blocker;      /* key of a move that has the place, or NULL; valid until the next
                               * change of the ledger */
    size_t position;          /* in the queue, from 1 */
    size_t running, outbound; /* active ones: all, and leaving the same node */
    /* For one that is about to be handed over: may its target node take it? */
    bool enter;
    enum wire_reason enter_reason; /* REASON_INBOUND_LIMIT, REASON_BANDWIDTH_BUDGET or none */
    const char *enter_blocker;
    size_t inbound;
};

struct limits_ledger;
struct limits_ledger *limits_ledger_new(const struct migration_limits *limits);
void limits_ledger_free(struct limits_ledger *l); /* takes NULL */

void limits_ledger_set(struct limits_ledger *l, const struct migration_limits *limits);
void limits_ledger_put(struct limits_ledger *l, const struct limits_move *m); /* new or changed */
void limits_ledger_drop(struct limits_ledger *l, const char *uid);
/* Notes that it was started (or handed over), before anything but the caller knows; holds until it
 * shows in what is put, is dropped or disclaimed. */
void limits_ledger_claim(struct limits_ledger *l, const char *uid, bool hand_off);
void limits_ledger_disclaim(struct limits_ledger *l, const char *uid);
/* Does it hold something by a claim alone? */
bool limits_ledger_is_claimed(const struct limits_ledger *l, const char *uid);

/* All zero for a migration that is not in the ledger. */
struct limits_answer limits_ledger_check(const struct limits_ledger *l, const char *uid);
/* Key of the i-th that may start now, or NULL; valid until the next change. */
const char *limits_ledger_next(const struct limits_ledger *l, size_t i);
size_t limits_ledger_waiting(const struct limits_ledger *l);
