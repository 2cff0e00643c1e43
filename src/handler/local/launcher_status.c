#include "handler/local/launcher_status.h"

#include "base/str.h"

const struct launcher_migration *launcher_status_migration(const struct launcher_status *s,
                                                           const char *uid, enum launcher_role role)
{
    return s && s->migration.role == role && ferry_streq(s->migration.uid, uid) ? &s->migration
                                                                                : NULL;
}

char *launcher_control_socket(const char *pod_dir, const struct launcher_status *s)
{
    bool of_old = s && s->migration.role != LAUNCHER_ROLE_NONE && !s->migration.filtered;

    return ferry_asprintf("%s/libvirt/%s", pod_dir, of_old ? "libvirt-sock" : "control.sock");
}

bool launcher_status_active(const struct launcher_status *s)
{
    return s->domain == LAUNCHER_DOMAIN_RUNNING ||
           (s->domain == LAUNCHER_DOMAIN_PAUSED && s->domain_reason == LAUNCHER_REASON_USER);
}

enum outcome_source launcher_status_as_source(const struct launcher_status *s)
{
    if (launcher_status_active(s)) {
        return OUTCOME_SOURCE_ACTIVE;
    }
    if (s->domain != LAUNCHER_DOMAIN_PAUSED) {
        return OUTCOME_SOURCE_GONE;
    }
    switch (s->domain_reason) {
    case LAUNCHER_REASON_POSTCOPY:
    case LAUNCHER_REASON_POSTCOPY_FAILED:
        return OUTCOME_SOURCE_POSTCOPY;
    case LAUNCHER_REASON_MIGRATION:
    case LAUNCHER_REASON_HELD:
        return OUTCOME_SOURCE_STOPPED;
    default: /* any other pause is the guest's own: it would go on here */
        return OUTCOME_SOURCE_ACTIVE;
    }
}
