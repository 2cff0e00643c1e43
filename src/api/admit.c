#include "api/admit.h"

#include <stdio.h>

#include "api/json.h"
#include "api/object.h"
#include "api/wire/wire_error.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"

/* ---- evictions ---------------------------------------------------------------------------------
 */

const char *api_eviction_strategy(const char *own, const char *cluster)
{
    return !ferry_str_empty(own) ? own : !ferry_str_empty(cluster) ? cluster : "LiveMigrate";
}

#define TRIGGERED "Eviction triggered evacuation of VMI \"%.250s\""

static bool condition_is_true(const yyjson_val *object, const char *type)
{
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)object, "/status/conditions"), *c;
    size_t i, max;

    yyjson_arr_foreach(list, i, max, c)
    {
        if (ferry_streq(api_json_str(c, "/type"), type)) {
            return ferry_streq(api_json_str(c, "/status"), "True");
        }
    }
    return false;
}

const char *api_admit_vmi_of_pod(const yyjson_val *pod)
{
    return wire_annotation(pod, ANNOTATION_DOMAIN);
}

bool api_admit_by_descheduler(const yyjson_val *eviction)
{
    return ferry_streq(wire_annotation(eviction, ANNOTATION_REQUESTED_BY),
                       "sigs.k8s.io/descheduler");
}

static bool is_machine_pod(const yyjson_val *pod)
{
    const char *phase = api_json_str(pod, "/status/phase");

    return ferry_streq(wire_label(pod, LABEL_APP), LABEL_APP_LAUNCHER) &&
           api_admit_vmi_of_pod(pod) && !wire_phase_is_over(phase);
}

enum api_eviction api_admit_eviction(const yyjson_val *pod, const yyjson_val *vmi,
                                     const char *cluster_strategy, char *why, size_t why_size)
{
    const char *name = api_admit_vmi_of_pod(pod);
    const char *own = api_json_str(vmi, "/spec/evictionStrategy");
    const char *strategy = api_eviction_strategy(own, cluster_strategy);
    const char *marked = api_json_str(vmi, "/status/evacuationNodeName");
    bool migratable = condition_is_true(vmi, CONDITION_LIVE_MIGRATABLE);

    if (!is_machine_pod(pod)) {
        return API_EVICTION_ALLOW;
    }
    if (!vmi) {
        snprintf(why, why_size, "kubevirt failed getting the vmi: \"%.250s\" not found", name);
        return API_EVICTION_DENY;
    }
    if (ferry_streq(strategy, "None") ||
        (ferry_streq(strategy, "LiveMigrateIfPossible") && !migratable)) {
        return API_EVICTION_ALLOW;
    }
    if (ferry_streq(strategy, "LiveMigrate") && !migratable) {
        bool said = !ferry_str_empty(own) || !ferry_str_empty(cluster_strategy);

        snprintf(why, why_size, "VMI \"%.250s\" %s but is not live-migratable", name,
                 said ? "is configured with an eviction strategy"
                      : "names no eviction strategy, which means LiveMigrate,");
        return API_EVICTION_DENY;
    }
    if (!ferry_str_empty(marked)) {
        snprintf(why, why_size, "Evacuation in progress: " TRIGGERED, name);
        return API_EVICTION_DENY;
    }
    if (!ferry_streq(api_json_str(pod, "/spec/nodeName"), api_json_str(vmi, "/status/nodeName"))) {
        snprintf(why, why_size, "Eviction request for target Pod of VMI \"%.250s\"", name);
        return API_EVICTION_DENY;
    }
    snprintf(why, why_size, TRIGGERED, name);
    return API_EVICTION_MARK;
}

/* ---- moves -------------------------------------------------------------------------------------
 */

static int check_vmi(const char *name, const struct api_object *object, struct ferry_error *err)
{
    if (!object) {
        return ferry_fail(err, FERRY_DENIED, "the VMI \"%.200s\" does not exist", name);
    }
    const struct api_vmi *vmi = &object->u.vmi;
    if (wire_vmi_is_over(vmi)) {
        return ferry_fail(err, FERRY_DENIED,
                          "Cannot migrate VMI \"%.200s\" in finalized state (%s)", name,
                          vmi->phase);
    }
    const struct api_condition *c = api_condition_find(&vmi->conditions, CONDITION_LIVE_MIGRATABLE);
    if (c && ferry_streq(c->status, "False")) {
        return ferry_fail(err, FERRY_DENIED,
                          "Cannot migrate VMI \"%.200s\", Reason: %.100s, Message: %.200s", name,
                          c->reason ? c->reason : "", c->message ? c->message : "");
    }
    return 0;
}

int api_admit_move(const char *vmi_name, const struct api_object *vmi,
                   struct api_object *const *migrations, size_t n_migrations,
                   struct ferry_error *err)
{
    int rc = check_vmi(vmi_name, vmi, err);

    for (size_t i = 0; rc == 0 && i < n_migrations; i++) {
        const struct api_migration *m = &migrations[i]->u.migration;

        if (ferry_streq(m->vmi_name, vmi_name) && !wire_migration_is_over(m)) {
            rc = ferry_fail_reason(err, FERRY_DENIED, wire_error_text(WIRE_ERROR_MOVE_IN_FLIGHT),
                                   "in-flight migration detected. Active migration job (%s) is "
                                   "currently already in progress for VMI %.200s",
                                   m->meta.name, vmi_name);
        }
    }
    return rc;
}
