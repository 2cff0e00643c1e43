/* What the status of a launcher (wire_launcher_status.h) means here. Pure. */
#pragma once

#include <stdbool.h>

#include "api/outcome.h"
#include "api/wire/wire_launcher_status.h"

/* The latest migration when it is `uid` in that role, else NULL. */
const struct launcher_migration *launcher_status_migration(const struct launcher_status *s,
                                                           const char *uid,
                                                           enum launcher_role role);

/* Where the source's libvirt is led to in the pod of a target: the filter of the control channel,
 * or libvirtd itself where the launcher prepared without one, as older versions do. `s` may be
 * NULL. Owned by the caller. */
char *launcher_control_socket(const char *pod_dir, const struct launcher_status *s);

/* Running, or paused by its user. */
bool launcher_status_active(const struct launcher_status *s);
/* The same in the words of outcome.h. */
enum outcome_source launcher_status_as_source(const struct launcher_status *s);

/* ---- how a launcher looks from outside --------------------------------------------------------
 */

enum launcher_reach {
    LAUNCHER_NO_POD,   /* there is no such pod on this node */
    LAUNCHER_ENDED,    /* its pod is over */
    LAUNCHER_STARTING, /* its pod does not run yet */
    LAUNCHER_SILENT,   /* its pod runs, it does not answer (now) */
    LAUNCHER_UP,
};

struct launcher_view {
    enum launcher_reach reach;
    bool pod_succeeded;                   /* ENDED: with exit 0 */
    const char *pod_reason;               /* ENDED: why, as its node says; may be NULL */
    const struct launcher_status *status; /* UP: what it says */
    const char *pod_uid;                  /* or NULL */
};
