#include "api/wire/wire_launcher_words.h"

#include "base/count.h"

#define WORDS(table, count)                                                                        \
    _Static_assert(FERRY_COUNT(table) == (count), "one text a value");                             \
    const struct wire_words wire_launcher_##table = {table, count}

static const char *const domains[] = {"none", "running", "paused", "shutoff", "crashed"};
static const char *const reasons[] = {
    [LAUNCHER_REASON_NONE] = "",
    [LAUNCHER_REASON_BOOTED] = "booted",
    [LAUNCHER_REASON_MIGRATED] = "migrated",
    [LAUNCHER_REASON_UNPAUSED] = "unpaused",
    [LAUNCHER_REASON_MIGRATION_CANCELED] = "migration-canceled",
    [LAUNCHER_REASON_POSTCOPY] = "postcopy",
    [LAUNCHER_REASON_POSTCOPY_FAILED] = "postcopy-failed",
    [LAUNCHER_REASON_USER] = "user",
    [LAUNCHER_REASON_MIGRATION] = "migration",
    [LAUNCHER_REASON_STARTING] = "starting",
    [LAUNCHER_REASON_SHUTTING_DOWN] = "shutting-down",
    [LAUNCHER_REASON_HELD] = "held",
    [LAUNCHER_REASON_IO_ERROR] = "io-error",
    [LAUNCHER_REASON_WATCHDOG] = "watchdog",
    [LAUNCHER_REASON_SHUTDOWN] = "shutdown",
    [LAUNCHER_REASON_DESTROYED] = "destroyed",
    [LAUNCHER_REASON_FAILED] = "failed",
    [LAUNCHER_REASON_CRASHED] = "crashed",
    [LAUNCHER_REASON_PANICKED] = "guest-panicked",
    [LAUNCHER_REASON_OUT_OF_MEMORY] = "out-of-memory",
    [LAUNCHER_REASON_UNKNOWN] = "unknown",
};
static const char *const roles[] = {"", "source", "target"};
static const char *const phases[] = {"prepared", "running", "succeeded", "failed"};
static const char *const paths[] = {"up", "away"};
static const char *const targets[] = {
    [OUTCOME_TARGET_UNKNOWN] = "unknown",     [OUTCOME_TARGET_GONE] = "gone",
    [OUTCOME_TARGET_INCOMING] = "incoming",   [OUTCOME_TARGET_ACTIVE] = "active",
    [OUTCOME_TARGET_POSTCOPY] = "postcopy",   [OUTCOME_TARGET_POSTCOPY_PAUSED] = "postcopy-paused",
    [OUTCOME_TARGET_NEVER_RAN] = "never-ran",
};
static const char *const watchdogs[] = {
    [LAUNCHER_WATCHDOG_NONE] = "none",         [LAUNCHER_WATCHDOG_PAUSE] = "pause",
    [LAUNCHER_WATCHDOG_RESET] = "reset",       [LAUNCHER_WATCHDOG_POWEROFF] = "poweroff",
    [LAUNCHER_WATCHDOG_SHUTDOWN] = "shutdown", [LAUNCHER_WATCHDOG_INJECT_NMI] = "inject-nmi",
    [LAUNCHER_WATCHDOG_OTHER] = "other",
};
static const char *const disk_errors[] = {
    [LAUNCHER_DISK_FINE] = "",
    [LAUNCHER_DISK_BROKEN] = "io-error",
    [LAUNCHER_DISK_FULL] = "no-space",
};

WORDS(domains, LAUNCHER_DOMAIN_COUNT);
WORDS(reasons, LAUNCHER_REASON_COUNT);
WORDS(roles, LAUNCHER_ROLE_COUNT);
WORDS(phases, LAUNCHER_PHASE_COUNT);
WORDS(paths, LAUNCHER_PATH_COUNT);
WORDS(targets, OUTCOME_TARGET_COUNT);
WORDS(watchdogs, LAUNCHER_WATCHDOG_COUNT);
WORDS(disk_errors, LAUNCHER_DISK_COUNT);

const char *wire_launcher_domain_text(enum launcher_domain v)
{
    return wire_words_text(&wire_launcher_domains, v);
}

const char *wire_launcher_reason_text(enum launcher_reason v)
{
    return wire_words_text(&wire_launcher_reasons, v);
}

const char *wire_launcher_role_text(enum launcher_role v)
{
    return wire_words_text(&wire_launcher_roles, v);
}

const char *wire_launcher_phase_text(enum launcher_phase v)
{
    return wire_words_text(&wire_launcher_phases, v);
}

const char *wire_launcher_path_text(enum launcher_path v)
{
    return wire_words_text(&wire_launcher_paths, v);
}

const char *wire_launcher_target_text(enum outcome_target v)
{
    return wire_words_text(&wire_launcher_targets, v);
}

const char *wire_launcher_watchdog_text(enum launcher_watchdog v)
{
    return wire_words_text(&wire_launcher_watchdogs, v);
}
