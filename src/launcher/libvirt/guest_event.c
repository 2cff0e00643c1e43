#include "launcher/libvirt/guest_event.h"

#include <libvirt/libvirt.h>
#include <stdio.h>

#include "base/count.h"
#include "base/str.h"

#define ALIAS_OF_USER                                                                              \
    "ua-" /* libvirt's prefix of names that we gave; domain_xml.c gives volumes' */

struct guest_event guest_event_of_lifecycle(int event, int detail)
{
    bool panicked =
        event == VIR_DOMAIN_EVENT_CRASHED && (detail == VIR_DOMAIN_EVENT_CRASHED_PANICKED ||
                                              detail == VIR_DOMAIN_EVENT_CRASHED_CRASHLOADED);

    return (struct guest_event){.what = panicked ? GUEST_PANICKED : GUEST_NOTHING};
}

struct guest_event guest_event_of_watchdog(int action)
{
    static const enum launcher_watchdog of[] = {
        [VIR_DOMAIN_EVENT_WATCHDOG_NONE] = LAUNCHER_WATCHDOG_NONE,
        [VIR_DOMAIN_EVENT_WATCHDOG_PAUSE] = LAUNCHER_WATCHDOG_PAUSE,
        [VIR_DOMAIN_EVENT_WATCHDOG_RESET] = LAUNCHER_WATCHDOG_RESET,
        [VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF] = LAUNCHER_WATCHDOG_POWEROFF,
        [VIR_DOMAIN_EVENT_WATCHDOG_SHUTDOWN] = LAUNCHER_WATCHDOG_SHUTDOWN,
        [VIR_DOMAIN_EVENT_WATCHDOG_DEBUG] = LAUNCHER_WATCHDOG_NONE,
        [VIR_DOMAIN_EVENT_WATCHDOG_INJECTNMI] = LAUNCHER_WATCHDOG_INJECT_NMI,
    };
    bool known = action >= 0 && (size_t)action < FERRY_COUNT(of);

    return (struct guest_event){.what = GUEST_WATCHDOG,
                                .watchdog = known ? of[action] : LAUNCHER_WATCHDOG_OTHER};
}

struct guest_event guest_event_of_disk(int action, const char *alias, const char *reason)
{
    struct guest_event e = {
        .what = GUEST_DISK_ERROR,
        .disk_error = ferry_streq(reason, "enospc") ? LAUNCHER_DISK_FULL : LAUNCHER_DISK_BROKEN,
    };

    if (action != VIR_DOMAIN_EVENT_IO_ERROR_PAUSE) {
        return (struct guest_event){.what = GUEST_NOTHING};
    }
    if (alias && ferry_str_starts(alias, ALIAS_OF_USER)) {
        snprintf(e.volume, sizeof(e.volume), "%s", alias + sizeof(ALIAS_OF_USER) - 1);
    }
    return e;
}
