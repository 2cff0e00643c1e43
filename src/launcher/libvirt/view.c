#include "launcher/libvirt/view.h"

#include <libvirt/libvirt.h>
#include <stddef.h>

#include "base/count.h"

static const struct {
    int state, reason;
    struct view view;
} table[] = {
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_BOOTED,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_BOOTED, false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_MIGRATED,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_MIGRATED, true, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_UNPAUSED,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_UNPAUSED, false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_MIGRATION_CANCELED,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_MIGRATION_CANCELED, false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_POSTCOPY,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_POSTCOPY, true, false, true}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_POSTCOPY_FAILED,
     {LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_POSTCOPY_FAILED, true, false, true}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_USER,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_USER, false, false, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_MIGRATION,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_MIGRATION, false, true, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_POSTCOPY,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_POSTCOPY, false, false, true}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_POSTCOPY_FAILED,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_POSTCOPY_FAILED, false, false, true}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_STARTING_UP,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_STARTING, false, true, false}},
    /* libvirt wanted it to run and could not: our gate was closed */
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_API_ERROR,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_HELD, false, true, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_IOERROR,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_IO_ERROR, false, false, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_WATCHDOG,
     {LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_WATCHDOG, false, false, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_CRASHED,
     {LAUNCHER_DOMAIN_CRASHED, LAUNCHER_REASON_PANICKED, false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_SHUTDOWN,
     {LAUNCHER_DOMAIN_SHUTOFF, LAUNCHER_REASON_SHUTDOWN, false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_DESTROYED,
     {LAUNCHER_DOMAIN_SHUTOFF, LAUNCHER_REASON_DESTROYED, false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_CRASHED,
     {LAUNCHER_DOMAIN_CRASHED, LAUNCHER_REASON_CRASHED, false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_MIGRATED,
     {LAUNCHER_DOMAIN_SHUTOFF, LAUNCHER_REASON_MIGRATED, true, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_FAILED,
     {LAUNCHER_DOMAIN_SHUTOFF, LAUNCHER_REASON_FAILED, false, false, false}},
};

struct view view_of(int state, int reason)
{
    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (table[i].state == state && table[i].reason == reason) {
            return table[i].view;
        }
    }
    switch (state) {
    case VIR_DOMAIN_RUNNING:
    case VIR_DOMAIN_BLOCKED:
        return (struct view){LAUNCHER_DOMAIN_RUNNING, LAUNCHER_REASON_UNKNOWN, false, false, false};
    case VIR_DOMAIN_PAUSED:
    case VIR_DOMAIN_PMSUSPENDED:
        return (struct view){LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_UNKNOWN, false, false, false};
    case VIR_DOMAIN_SHUTDOWN: /* its vCPUs stand still, the process is still there */
        return (struct view){LAUNCHER_DOMAIN_PAUSED, LAUNCHER_REASON_SHUTTING_DOWN, false, true,
                             false};
    case VIR_DOMAIN_CRASHED:
        return (struct view){LAUNCHER_DOMAIN_CRASHED, LAUNCHER_REASON_CRASHED, false, false, false};
    default:
        return (struct view){LAUNCHER_DOMAIN_SHUTOFF, LAUNCHER_REASON_UNKNOWN, false, false, false};
    }
}

struct view view_none(void)
{
    return (struct view){LAUNCHER_DOMAIN_NONE, LAUNCHER_REASON_NONE, false, false, false};
}

bool view_active(const struct view *v)
{
    return v->state == LAUNCHER_DOMAIN_RUNNING || v->state == LAUNCHER_DOMAIN_PAUSED;
}

bool view_equal(const struct view *a, const struct view *b)
{
    return a->state == b->state && a->reason == b->reason;
}
