/* What a launcher and the handler of its node say of a guest and of a move, each word once: in its
 * status, in calls to it and in its state file. How it moves, and what became of an abort, are
 * KubeVirt's words (wire_mode.h, wire_abort.h). */
#pragma once

#include "api/outcome.h"
#include "api/wire/wire_words.h"

enum launcher_domain {
    LAUNCHER_DOMAIN_NONE,
    LAUNCHER_DOMAIN_RUNNING,
    LAUNCHER_DOMAIN_PAUSED,
    LAUNCHER_DOMAIN_SHUTOFF,
    LAUNCHER_DOMAIN_CRASHED,
    LAUNCHER_DOMAIN_COUNT
};

enum launcher_reason { /* why the domain is in that state */
                       LAUNCHER_REASON_NONE,
                       /* running */
                       LAUNCHER_REASON_BOOTED,
                       LAUNCHER_REASON_MIGRATED, /* shutoff, too: it went to another host */
                       LAUNCHER_REASON_UNPAUSED,
                       LAUNCHER_REASON_MIGRATION_CANCELED,
                       LAUNCHER_REASON_POSTCOPY, /* paused, too, as the next */
                       LAUNCHER_REASON_POSTCOPY_FAILED,
                       /* paused */
                       LAUNCHER_REASON_USER,
                       LAUNCHER_REASON_MIGRATION, /* switching over */
                       LAUNCHER_REASON_STARTING,
                       LAUNCHER_REASON_SHUTTING_DOWN,
                       LAUNCHER_REASON_HELD, /* not to run before the target's fate is known */
                       LAUNCHER_REASON_IO_ERROR,
                       LAUNCHER_REASON_WATCHDOG,
                       /* shutoff and crashed */
                       LAUNCHER_REASON_SHUTDOWN,
                       LAUNCHER_REASON_DESTROYED,
                       LAUNCHER_REASON_FAILED,
                       LAUNCHER_REASON_CRASHED,
                       LAUNCHER_REASON_PANICKED,
                       LAUNCHER_REASON_OUT_OF_MEMORY, /* the kernel killed it for its pod's limit */
                       LAUNCHER_REASON_UNKNOWN,       /* libvirt's, or of a later version */
                       LAUNCHER_REASON_COUNT
};

enum launcher_role { /* NONE: there was no move yet */
                     LAUNCHER_ROLE_NONE,
                     LAUNCHER_ROLE_SOURCE,
                     LAUNCHER_ROLE_TARGET,
                     LAUNCHER_ROLE_COUNT
};

enum launcher_phase {
    LAUNCHER_PREPARED,
    LAUNCHER_RUNNING,
    LAUNCHER_SUCCEEDED,
    LAUNCHER_FAILED,
    LAUNCHER_PHASE_COUNT
};

enum launcher_path { LAUNCHER_PATH_UP, LAUNCHER_PATH_AWAY, LAUNCHER_PATH_COUNT };

/* What a guest's watchdog did to it. */
enum launcher_watchdog {
    LAUNCHER_WATCHDOG_NONE,
    LAUNCHER_WATCHDOG_PAUSE,
    LAUNCHER_WATCHDOG_RESET,
    LAUNCHER_WATCHDOG_POWEROFF,
    LAUNCHER_WATCHDOG_SHUTDOWN,
    LAUNCHER_WATCHDOG_INJECT_NMI,
    LAUNCHER_WATCHDOG_OTHER,
    LAUNCHER_WATCHDOG_COUNT
};

/* Why a guest stands still for its disk. */
enum launcher_disk_error {
    LAUNCHER_DISK_FINE,
    LAUNCHER_DISK_BROKEN,
    LAUNCHER_DISK_FULL,
    LAUNCHER_DISK_COUNT
};

/* One text for each value, static; "" for one that is not said. */
const char *wire_launcher_domain_text(enum launcher_domain v);
const char *wire_launcher_reason_text(enum launcher_reason v);
const char *wire_launcher_role_text(enum launcher_role v);
const char *wire_launcher_phase_text(enum launcher_phase v);
const char *wire_launcher_path_text(enum launcher_path v);
const char *wire_launcher_target_text(enum outcome_target v);
const char *wire_launcher_watchdog_text(enum launcher_watchdog v);

/* The same as tables, for codecs. */
extern const struct wire_words wire_launcher_domains, wire_launcher_reasons, wire_launcher_roles,
    wire_launcher_phases, wire_launcher_paths, wire_launcher_targets, wire_launcher_watchdogs,
    wire_launcher_disk_errors;
