/* What libvirt tells of a guest beyond its state, in our words. Pure. */
#pragma once

#include <stdbool.h>

#include "api/wire/wire_launcher_status.h"

enum guest_what {
    GUEST_NOTHING,
    GUEST_RESET,      /* by itself, by its watchdog, or by somebody else */
    GUEST_WATCHDOG,   /* fired; `watchdog` is what it did */
    GUEST_DISK_ERROR, /* it was stopped for `volume` */
    GUEST_PANICKED,   /* its kernel said so */
};

struct guest_event {
    enum guest_what what;
    enum launcher_watchdog watchdog;
    enum launcher_disk_error disk_error;
    char volume[LAUNCHER_VOLUME_SIZE]; /* "" = libvirt names none of ours */
};

/* `event` is a virDomainEventType, `detail` of the enum that belongs to it. GUEST_NOTHING for what
 * the domain's state says, too. */
struct guest_event guest_event_of_lifecycle(int event, int detail);
/* `action` is a virDomainEventWatchdogAction. */
struct guest_event guest_event_of_watchdog(int action);
/* `action` is a virDomainEventIOErrorAction, `alias` the disk's, `reason` "enospc" or anything
 * else; both may be NULL. GUEST_NOTHING when the guest was not stopped for it. */
struct guest_event guest_event_of_disk(int action, const char *alias, const char *reason);
