/* Why a move waits, or failed: the reason codes of docs/contracts/reasons.md, a closed set. They
 * stand in conditions, events, annotations, and in front of a failure's text ("TargetLost: ...").
 * Pure. */
#pragma once

#include <stdbool.h>

enum wire_reason {
    REASON_NONE, /* there is none, or a word that is none of the set */
    /* waits */
    REASON_CLUSTER_LIMIT,
    REASON_OUTBOUND_LIMIT,
    REASON_INBOUND_LIMIT,
    REASON_BANDWIDTH_BUDGET,
    REASON_QUOTA,
    REASON_VOLUME_NOT_READY,
    REASON_UNSCHEDULABLE, /* may be a failure, too */
    REASON_NEVER_SCHEDULABLE,
    REASON_TARGET_POD_PENDING,
    REASON_BACK_OFF,
    REASON_SOURCE_BUSY, /* may be a failure, too */
    REASON_POLICY_INVALID,
    REASON_PATH_AWAY,
    REASON_TARGET_PREPARING,
    REASON_RELAY_TROUBLE, /* may be a failure, too */
    REASON_LAUNCHER_TROUBLE,
    REASON_NETWORK_TROUBLE,
    /* failures */
    REASON_UNSCHEDULABLE_TIMEOUT,
    REASON_PENDING_TIMEOUT,
    REASON_PREPARE_TIMEOUT,
    REASON_CONNECT_TIMEOUT,
    REASON_REFUSED,
    REASON_TLS_FAILED,
    REASON_STUCK,
    REASON_NOT_CONVERGING,
    REASON_ABORTED,
    REASON_DESTINATION_TOO_SMALL,
    REASON_CPU_INCOMPATIBLE,
    REASON_CONTROL_REFUSED,
    REASON_DEVICE_NOT_MIGRATABLE,
    REASON_TARGET_LOST,
    REASON_SOURCE_LOST,
    REASON_LIBVIRT_ERROR,
    REASON_COUNT
};

/* Static; NULL for REASON_NONE. */
const char *wire_reason_text(enum wire_reason reason);
enum wire_reason wire_reason_of(const char *text); /* may be NULL */
/* The code that a failure's text begins with: "CODE: what happened". */
enum wire_reason wire_reason_of_failure(const char *text); /* may be NULL */
/* Such a text; the caller's. */
char *wire_reason_failure(enum wire_reason reason, const char *what);

bool wire_reason_is_wait(enum wire_reason reason);
bool wire_reason_is_failure(enum wire_reason reason);
/* What a node may say of its own side of a move (wire_trouble.h). */
bool wire_reason_is_trouble(enum wire_reason reason);
