#include "launcher/report/guest_note.h"

#include <stdio.h>

enum { SAME_MS = 1000 }; /* one reset may be told more than once */

bool guest_note(struct state_values *v, const struct guest_event *e, int64_t now_ms)
{
    struct launcher_guest *g = &v->guest;

    switch (e->what) {
    case GUEST_NOTHING:
        return false;
    case GUEST_RESET:
        if (now_ms - g->reset_ms < SAME_MS) {
            return false;
        }
        g->reset_ms = now_ms;
        return true;
    case GUEST_WATCHDOG:
        g->watchdog_ms = now_ms;
        g->watchdog = e->watchdog;
        return true;
    case GUEST_DISK_ERROR:
        g->disk_error = e->disk_error;
        snprintf(g->volume, sizeof(g->volume), "%s", e->volume);
        return true;
    case GUEST_PANICKED:
        v->panicked = true;
        return true;
    }
    return false;
}

struct view guest_view(const struct view *domain, const struct state_values *v, int64_t kills)
{
    struct view seen = *domain;

    if (seen.state == LAUNCHER_DOMAIN_CRASHED && kills > v->oom_kills) {
        seen.reason = LAUNCHER_REASON_OUT_OF_MEMORY;
    } else if (seen.state == LAUNCHER_DOMAIN_CRASHED && v->panicked) {
        seen.reason = LAUNCHER_REASON_PANICKED;
    }
    return seen;
}

struct launcher_guest guest_told(const struct view *domain, const struct launcher_guest *g)
{
    struct launcher_guest told = *g;

    if (domain->state != LAUNCHER_DOMAIN_PAUSED || domain->reason != LAUNCHER_REASON_IO_ERROR) {
        told.disk_error = LAUNCHER_DISK_FINE;
        told.volume[0] = '\0';
    }
    return told;
}
