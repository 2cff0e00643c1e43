#include "launcher/report/status.h"

#include "base/clock.h"
#include "base/str.h"
#include "json/doc.h"

static void add_time(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key, int64_t unix_ms)
{
    char text[FERRY_RFC3339_SIZE];

    if (unix_ms) {
        yyjson_mut_obj_add_strcpy(doc, o, key, ferry_rfc3339(unix_ms, text));
    }
}

yyjson_mut_val *status_migration(yyjson_mut_doc *doc, const struct state_migration *m,
                                 const struct sample *sample)
{
    if (m->role == STATE_ROLE_NONE) {
        return NULL;
    }
    yyjson_mut_val *o = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_strcpy(doc, o, "uid", m->uid);
    yyjson_mut_obj_add_str(doc, o, "role", state_role_name(m->role));
    yyjson_mut_obj_add_str(doc, o, "phase", state_phase_name(m->phase));
    yyjson_mut_obj_add_str(doc, o, "mode", strategy_mode_name(m->mode));
    add_time(doc, o, "startTimestamp", m->start_ms);
    add_time(doc, o, "endTimestamp", m->end_ms);
    yyjson_mut_obj_add_bool(doc, o, "abortRequested", m->abort != STATE_ABORT_NONE);
    yyjson_mut_obj_add_str(doc, o, "abortStatus", state_abort_status_name(m->abort_status));
    yyjson_mut_obj_add_strcpy(doc, o, "failureReason", m->failure_reason);
    yyjson_mut_obj_add_strcpy(doc, o, "reasonCode", m->reason_code);
    if (m->never_ran) {
        yyjson_mut_obj_add_bool(doc, o, "neverRan", true);
    }
    if (m->filtered) {
        yyjson_mut_obj_add_bool(doc, o, "filtered", true);
    }
    if (m->recoveries) {
        yyjson_mut_obj_add_int(doc, o, "recoveries", m->recoveries);
    }
    if (m->downtime_ms >= 0) {
        yyjson_mut_obj_add_int(doc, o, "downtimeMs", m->downtime_ms);
    }
    if (m->role == STATE_ROLE_SOURCE && sample->present) {
        yyjson_mut_obj_add_val(doc, o, "sample", sample_json(doc, sample));
    }
    return o;
}

char *status_json(const struct view *domain, const char *machine, const struct state_migration *m,
                  const struct sample *sample)
{
    yyjson_mut_doc *doc = json_doc_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc), *d = yyjson_mut_obj(doc);
    yyjson_mut_val *migration = status_migration(doc, m, sample);

    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_str(doc, d, "state", view_state_name(domain->state));
    yyjson_mut_obj_add_str(doc, d, "reason", domain->reason);
    yyjson_mut_obj_add_val(doc, o, "domain", d);
    if (*machine && view_active(domain)) {
        yyjson_mut_obj_add_str(doc, o, "machine", machine);
    }
    if (migration) {
        yyjson_mut_obj_add_val(doc, o, "migration", migration);
    }
    return json_doc_take(doc);
}
