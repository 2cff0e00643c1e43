/* What a launcher says about itself (docs/contracts/launcher.md). Pure: text in,
 * values out. The launcher runs beside the hypervisor: its words are checked, not trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "api/outcome.h"
#include "base/cleanup.h"
#include "base/error.h"

enum launcher_domain {
    LAUNCHER_DOMAIN_NONE,
    LAUNCHER_DOMAIN_RUNNING,
    LAUNCHER_DOMAIN_PAUSED,
    LAUNCHER_DOMAIN_SHUTOFF,
    LAUNCHER_DOMAIN_CRASHED,
    LAUNCHER_DOMAIN_COUNT
};
enum launcher_role { LAUNCHER_ROLE_SOURCE, LAUNCHER_ROLE_TARGET, LAUNCHER_ROLE_COUNT };
enum launcher_phase {
    LAUNCHER_PREPARED,
    LAUNCHER_RUNNING,
    LAUNCHER_SUCCEEDED,
    LAUNCHER_FAILED,
    LAUNCHER_PHASE_COUNT
};

struct launcher_migration {
    const char *uid;
    enum launcher_role role;
    enum launcher_phase phase;
    const char *mode; /* never NULL, may be "" */
    int64_t start_ms, end_ms;
    const char *abort_status;                 /* never NULL */
    const char *failure_reason, *reason_code; /* never NULL */
    int64_t downtime_ms;                      /* -1 = not known */
    bool never_ran;                           /* target, failed: and it never will */
    bool filtered;                            /* target: see launcher_control_socket() */
    const yyjson_val *sample;                 /* or NULL */
};

struct launcher_status {
    enum launcher_domain domain;
    const char *domain_reason; /* never NULL */
    const char *machine;       /* type of the running domain; "" = it does not say */
    bool has_migration;
    struct launcher_migration migration;
    yyjson_doc *doc; /* owns all strings */
};

int launcher_status_parse(const char *json, size_t len, struct launcher_status *ret,
                          struct ferry_error *err);
void launcher_status_done(struct launcher_status *s);
#define launcher_cleanup_status ferry_cleanup(launcher_status_done)

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
    const struct launcher_status *status; /* UP: what it says */
    const char *pod_uid;                  /* or NULL */
};
