#include "handler/local/launcher_status.h"

#include <string.h>

#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

static int pick(const char *text, const char *const *names, int n, const char *what, int *ret,
                struct ferry_error *err)
{
    for (int i = 0; i < n; i++) {
        if (ferry_streq(text, names[i])) {
            *ret = i;
            return 0;
        }
    }
    return ferry_fail(err, FERRY_PEER, "launcher status: %s is '%s'", what,
                      text ? text : "(absent)");
}

static const char *text_of(const yyjson_val *v, const char *pointer)
{
    const char *s = api_json_str(v, pointer);

    return s ? s : "";
}

static int time_of(const yyjson_val *v, const char *pointer, int64_t *ret, struct ferry_error *err)
{
    const char *s = api_json_str(v, pointer);

    return ferry_str_empty(s) ? 0 : api_time_parse(s, ret, err);
}

static int parse_migration(const yyjson_val *v, struct launcher_migration *m,
                           struct ferry_error *err)
{
    static const char *const roles[] = {"source", "target"};
    static const char *const phases[] = {"prepared", "running", "succeeded", "failed"};
    _Static_assert(FERRY_COUNT(roles) == LAUNCHER_ROLE_COUNT, "");
    _Static_assert(FERRY_COUNT(phases) == LAUNCHER_PHASE_COUNT, "");
    int role = 0, phase = 0;

    m->uid = text_of(v, "/uid");
    int rc =
        pick(api_json_str(v, "/role"), roles, LAUNCHER_ROLE_COUNT, "migration.role", &role, err);
    if (rc == 0) {
        rc = pick(api_json_str(v, "/phase"), phases, LAUNCHER_PHASE_COUNT, "migration.phase",
                  &phase, err);
    }
    if (rc == 0) {
        rc = time_of(v, "/startTimestamp", &m->start_ms, err);
    }
    if (rc == 0) {
        rc = time_of(v, "/endTimestamp", &m->end_ms, err);
    }
    m->role = (enum launcher_role)role;
    m->phase = (enum launcher_phase)phase;
    m->mode = text_of(v, "/mode");
    m->abort_status = text_of(v, "/abortStatus");
    m->failure_reason = text_of(v, "/failureReason");
    m->reason_code = text_of(v, "/reasonCode");
    m->never_ran = api_json_bool(v, "/neverRan", false);
    m->filtered = api_json_bool(v, "/filtered", false);
    m->downtime_ms = api_json_int(v, "/downtimeMs", -1);
    m->sample = yyjson_obj_get((yyjson_val *)v, "sample");
    return rc;
}

int launcher_status_parse(const char *json, size_t len, struct launcher_status *ret,
                          struct ferry_error *err)
{
    static const char *const states[] = {"none", "running", "paused", "shutoff", "crashed"};
    _Static_assert(FERRY_COUNT(states) == LAUNCHER_DOMAIN_COUNT, "");
    launcher_cleanup_status struct launcher_status s = {0};
    int domain = 0;
    int rc = api_json_parse(json, len, &s.doc, err);

    if (rc < 0) {
        return ferry_wrap(err, "launcher status");
    }
    const yyjson_val *root = yyjson_doc_get_root(s.doc);
    const yyjson_val *migration = yyjson_obj_get((yyjson_val *)root, "migration");
    rc = pick(api_json_str(root, "/domain/state"), states, LAUNCHER_DOMAIN_COUNT, "domain.state",
              &domain, err);
    s.domain = (enum launcher_domain)domain;
    s.machine = text_of(root, "/machine");
    s.domain_reason = text_of(root, "/domain/reason");
    if (rc == 0 && migration && !yyjson_is_null((yyjson_val *)migration)) {
        s.has_migration = true;
        rc = parse_migration(migration, &s.migration, err);
    }
    if (rc < 0) {
        return rc;
    }
    *ret = s;
    s.doc = NULL;
    return 0;
}

void launcher_status_done(struct launcher_status *s)
{
    yyjson_doc_free(s->doc);
    *s = (struct launcher_status){0};
}

const struct launcher_migration *launcher_status_migration(const struct launcher_status *s,
                                                           const char *uid, enum launcher_role role)
{
    return s && s->has_migration && s->migration.role == role && ferry_streq(s->migration.uid, uid)
               ? &s->migration
               : NULL;
}

char *launcher_control_socket(const char *pod_dir, const struct launcher_status *s)
{
    bool of_old = s && s->has_migration && !s->migration.filtered;

    return ferry_asprintf("%s/libvirt/%s", pod_dir, of_old ? "libvirt-sock" : "control.sock");
}

bool launcher_status_active(const struct launcher_status *s)
{
    return s->domain == LAUNCHER_DOMAIN_RUNNING ||
           (s->domain == LAUNCHER_DOMAIN_PAUSED && ferry_streq(s->domain_reason, "user"));
}

enum outcome_source launcher_status_as_source(const struct launcher_status *s)
{
    if (launcher_status_active(s)) {
        return OUTCOME_SOURCE_ACTIVE;
    }
    if (s->domain != LAUNCHER_DOMAIN_PAUSED) {
        return OUTCOME_SOURCE_GONE;
    }
    if (ferry_str_starts(s->domain_reason, "postcopy")) {
        return OUTCOME_SOURCE_POSTCOPY;
    }
    /* Any other pause is the guest's own: it would go on here. */
    return ferry_streq(s->domain_reason, "migration") || ferry_streq(s->domain_reason, "held")
               ? OUTCOME_SOURCE_STOPPED
               : OUTCOME_SOURCE_ACTIVE;
}
