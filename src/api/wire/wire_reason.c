#include "api/wire/wire_reason.h"

#include <string.h>

#include "base/count.h"
#include "base/str.h"

enum { WAIT = 1, FAILURE = 2, TROUBLE = 4 };

static const struct {
    const char *text;
    unsigned is;
} reasons[] = {
    [REASON_NONE] = {NULL, 0},
    [REASON_CLUSTER_LIMIT] = {"ClusterLimit", WAIT},
    [REASON_OUTBOUND_LIMIT] = {"OutboundLimit", WAIT},
    [REASON_INBOUND_LIMIT] = {"InboundLimit", WAIT},
    [REASON_BANDWIDTH_BUDGET] = {"BandwidthBudget", WAIT},
    [REASON_QUOTA] = {"Quota", WAIT},
    [REASON_VOLUME_NOT_READY] = {"VolumeNotReady", WAIT},
    [REASON_UNSCHEDULABLE] = {"Unschedulable", WAIT | FAILURE},
    [REASON_NEVER_SCHEDULABLE] = {"NeverSchedulable", WAIT},
    [REASON_TARGET_POD_PENDING] = {"TargetPodPending", WAIT},
    [REASON_BACK_OFF] = {"BackOff", WAIT},
    [REASON_SOURCE_BUSY] = {"SourceBusy", WAIT | FAILURE},
    [REASON_POLICY_INVALID] = {"PolicyInvalid", WAIT},
    [REASON_PATH_AWAY] = {"PathAway", WAIT},
    [REASON_TARGET_PREPARING] = {"TargetPreparing", WAIT},
    [REASON_RELAY_TROUBLE] = {"RelayTrouble", WAIT | FAILURE | TROUBLE},
    [REASON_LAUNCHER_TROUBLE] = {"LauncherTrouble", WAIT | TROUBLE},
    [REASON_NETWORK_TROUBLE] = {"NetworkTrouble", WAIT | TROUBLE},
    [REASON_UNSCHEDULABLE_TIMEOUT] = {"UnschedulableTimeout", FAILURE},
    [REASON_PENDING_TIMEOUT] = {"PendingTimeout", FAILURE},
    [REASON_PREPARE_TIMEOUT] = {"PrepareTimeout", FAILURE},
    [REASON_CONNECT_TIMEOUT] = {"ConnectTimeout", FAILURE},
    [REASON_REFUSED] = {"Refused", FAILURE | TROUBLE},
    [REASON_TLS_FAILED] = {"TLSFailed", FAILURE},
    [REASON_STUCK] = {"Stuck", FAILURE},
    [REASON_NOT_CONVERGING] = {"NotConverging", FAILURE},
    [REASON_ABORTED] = {"Aborted", FAILURE},
    [REASON_DESTINATION_TOO_SMALL] = {"DestinationTooSmall", FAILURE},
    [REASON_CPU_INCOMPATIBLE] = {"CPUIncompatible", FAILURE},
    [REASON_CONTROL_REFUSED] = {"ControlRefused", FAILURE},
    [REASON_DEVICE_NOT_MIGRATABLE] = {"DeviceNotMigratable", FAILURE},
    [REASON_TARGET_LOST] = {"TargetLost", FAILURE},
    [REASON_SOURCE_LOST] = {"SourceLost", FAILURE},
    [REASON_LIBVIRT_ERROR] = {"LibvirtError", FAILURE},
};
_Static_assert(FERRY_COUNT(reasons) == REASON_COUNT, "one row per reason");

const char *wire_reason_text(enum wire_reason reason)
{
    return reasons[reason].text;
}

static enum wire_reason find(const char *text, size_t len)
{
    for (int r = REASON_NONE + 1; r < REASON_COUNT; r++) {
        if (strlen(reasons[r].text) == len && strncmp(reasons[r].text, text, len) == 0) {
            return (enum wire_reason)r;
        }
    }
    return REASON_NONE;
}

enum wire_reason wire_reason_of(const char *text)
{
    return text ? find(text, strlen(text)) : REASON_NONE;
}

enum wire_reason wire_reason_of_failure(const char *text)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    enum wire_reason r = colon ? find(text, (size_t)(colon - text)) : REASON_NONE;

    return wire_reason_is_failure(r) ? r : REASON_NONE;
}

char *wire_reason_failure(enum wire_reason reason, const char *what)
{
    return ferry_asprintf("%s: %s", reasons[reason].text, what);
}

bool wire_reason_is_wait(enum wire_reason reason)
{
    return reasons[reason].is & WAIT;
}

bool wire_reason_is_failure(enum wire_reason reason)
{
    return reasons[reason].is & FAILURE;
}

bool wire_reason_is_trouble(enum wire_reason reason)
{
    return reasons[reason].is & TROUBLE;
}
