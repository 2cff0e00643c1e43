#include "launcher/report/status.h"

#include <stdio.h>

#include "launcher/report/guest_note.h"

void status_of_migration(const struct state_migration *m, const struct launcher_sample *sample,
                         struct launcher_migration *ret)
{
    *ret = (struct launcher_migration){
        .role = m->role,
        .phase = m->phase,
        .mode = m->mode,
        .start_ms = m->start_ms,
        .end_ms = m->end_ms,
        .abort_requested = m->abort != STATE_ABORT_NONE,
        .abort_status = m->abort_status,
        .never_ran = m->never_ran,
        .filtered = m->filtered,
        .recoveries = m->recoveries,
        .downtime_ms = m->downtime_ms,
        .sample = *sample,
    };
    snprintf(ret->uid, sizeof(ret->uid), "%s", m->uid);
    snprintf(ret->failure_reason, sizeof(ret->failure_reason), "%s", m->failure_reason);
    snprintf(ret->reason_code, sizeof(ret->reason_code), "%s", m->reason_code);
}

char *status_json(const struct view *domain, const char *machine, const struct state_values *v,
                  const struct launcher_sample *sample)
{
    struct launcher_status s = {.domain = domain->state,
                                .domain_reason = domain->reason,
                                .guest = guest_told(domain, &v->guest)};

    status_of_migration(&v->migration, sample, &s.migration);
    if (view_active(domain)) {
        snprintf(s.machine, sizeof(s.machine), "%s", machine);
    }
    return wire_launcher_status_write(&s);
}
