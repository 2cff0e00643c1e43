#include "launcher/libvirt/view.h"

#include <assert.h>
#include <libvirt/libvirt.h>
#include <stddef.h>

#include "base/count.h"
#include "base/str.h"

static const char *const state_names[] = {"none", "running", "paused", "shutoff", "crashed"};
static_assert(FERRY_COUNT(state_names) == VIEW_STATE_COUNT, "one name a state");

static const struct {
    int state, reason;
    struct view view;
} table[] = {
    {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED, {VIEW_RUNNING, "booted", false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_MIGRATED,
     {VIEW_RUNNING, "migrated", true, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_UNPAUSED,
     {VIEW_RUNNING, "unpaused", false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_MIGRATION_CANCELED,
     {VIEW_RUNNING, "migration-canceled", false, false, false}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_POSTCOPY,
     {VIEW_RUNNING, "postcopy", true, false, true}},
    {VIR_DOMAIN_RUNNING,
     VIR_DOMAIN_RUNNING_POSTCOPY_FAILED,
     {VIEW_RUNNING, "postcopy-failed", true, false, true}},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_USER, {VIEW_PAUSED, "user", false, false, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_MIGRATION,
     {VIEW_PAUSED, "migration", false, true, false}},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, {VIEW_PAUSED, "postcopy", false, false, true}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_POSTCOPY_FAILED,
     {VIEW_PAUSED, "postcopy-failed", false, false, true}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_STARTING_UP,
     {VIEW_PAUSED, "starting", false, true, false}},
    /* libvirt wanted it to run and could not: our gate was closed */
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_API_ERROR, {VIEW_PAUSED, "held", false, true, false}},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_IOERROR, {VIEW_PAUSED, "io-error", false, false, false}},
    {VIR_DOMAIN_PAUSED,
     VIR_DOMAIN_PAUSED_CRASHED,
     {VIEW_CRASHED, "guest-panicked", false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_SHUTDOWN,
     {VIEW_SHUTOFF, "shutdown", false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_DESTROYED,
     {VIEW_SHUTOFF, "destroyed", false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_CRASHED,
     {VIEW_CRASHED, "crashed", false, false, false}},
    {VIR_DOMAIN_SHUTOFF,
     VIR_DOMAIN_SHUTOFF_MIGRATED,
     {VIEW_SHUTOFF, "migrated", true, false, false}},
    {VIR_DOMAIN_SHUTOFF, VIR_DOMAIN_SHUTOFF_FAILED, {VIEW_SHUTOFF, "failed", false, false, false}},
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
        return (struct view){VIEW_RUNNING, "unknown", false, false, false};
    case VIR_DOMAIN_PAUSED:
    case VIR_DOMAIN_PMSUSPENDED:
        return (struct view){VIEW_PAUSED, "unknown", false, false, false};
    case VIR_DOMAIN_SHUTDOWN: /* its vCPUs stand still, the process is still there */
        return (struct view){VIEW_PAUSED, "shutting-down", false, true, false};
    case VIR_DOMAIN_CRASHED:
        return (struct view){VIEW_CRASHED, "crashed", false, false, false};
    default:
        return (struct view){VIEW_SHUTOFF, "unknown", false, false, false};
    }
}

struct view view_none(void)
{
    return (struct view){VIEW_NONE, "", false, false, false};
}

const char *view_state_name(enum view_state state)
{
    return (unsigned)state < VIEW_STATE_COUNT ? state_names[state] : "none";
}

bool view_active(const struct view *v)
{
    return v->state == VIEW_RUNNING || v->state == VIEW_PAUSED;
}

bool view_equal(const struct view *a, const struct view *b)
{
    return a->state == b->state && ferry_streq(a->reason, b->reason);
}
