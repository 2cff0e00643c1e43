#include "control/network/network_decide.h"

#include <string.h>

#include "api/guest_nic.h"
#include "api/json.h"
#include "api/wire/wire_keys.h"
#include "api/wire/wire_networks.h"
#include "api/wire/wire_phase.h"
#include "base/str.h"
#include "control/plan/facts.h"

enum { GRACE_MS = 15000, RECHECK_MS = 10000 };

static yyjson_val *find_named(yyjson_val *list, const char *key, const char *name)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(list);

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(yyjson_get_str(yyjson_obj_get(v, key)), name)) {
            return v;
        }
    }
    return NULL;
}

/* The name of the attachment as the pod reports it: "namespace/name". */
static bool same_attachment(const char *wanted, const char *ns, const char *reported)
{
    ferry_cleanup_free char *full =
        strchr(wanted, '/') ? ferry_strdup(wanted) : ferry_asprintf("%s/%s", ns ? ns : "", wanted);

    return ferry_streq(full, reported);
}

/* What the interfaces of the pod are attached to. */
struct attached {
    yyjson_val *multus;        /* as multus says: [{name, interface}] */
    struct wire_networks ours; /* without it, as ferry-pods was told */
};

/* Is the network in the pod under another name than the spec wants? */
static bool is_renamed(const struct api_vmi *vmi, yyjson_val *status,
                       const struct attached *attached, const char *wanted)
{
    const char *interface = yyjson_get_str(yyjson_obj_get(status, "podInterfaceName"));
    yyjson_val *in_pod = interface ? find_named(attached->multus, "interface", interface) : NULL;
    const struct wire_network *ours =
        interface ? wire_networks_of(&attached->ours, interface) : NULL;
    ferry_cleanup_free char *told = ours ? ferry_asprintf("%s/%s", ours->ns, ours->name) : NULL;
    const char *reported = in_pod ? yyjson_get_str(yyjson_obj_get(in_pod, "name")) : told;

    return reported && !same_attachment(wanted, vmi->meta.namespace_, reported);
}

static enum network_answer judge(const struct api_vmi *vmi, yyjson_val *interface,
                                 const char *attachment, const struct attached *attached)
{
    yyjson_val *seen = yyjson_obj_get((yyjson_val *)vmi->status, "interfaces");
    yyjson_val *status =
        find_named(seen, "name", yyjson_get_str(yyjson_obj_get(interface, "name")));
    const char *source = yyjson_get_str(yyjson_obj_get(status, "infoSource"));
    bool absent = ferry_streq(yyjson_get_str(yyjson_obj_get(interface, "state")), "absent");

    if (!absent && !status) {
        return yyjson_obj_get(interface, "sriov") ? NETWORK_MOVE : NETWORK_PENDING;
    }
    if (absent) {
        bool in_pod = source && strstr(source, "multus-status");
        bool in_guest = source && strstr(source, "domain");

        return in_pod && !in_guest ? NETWORK_PENDING : NETWORK_UNKNOWN;
    }
    return is_renamed(vmi, status, attached, attachment) ? NETWORK_MOVE : NETWORK_UNKNOWN;
}

/* The most that any secondary network asks for, without regard to time. */
static enum network_answer judge_all(const struct api_vmi *vmi, const struct attached *attached)
{
    yyjson_val *networks = yyjson_obj_get((yyjson_val *)vmi->spec, "networks");
    yyjson_val *interfaces = yyjson_ptr_get((yyjson_val *)vmi->spec, "/domain/devices/interfaces");
    yyjson_arr_iter it = yyjson_arr_iter_with(networks);
    enum network_answer most = NETWORK_UNKNOWN;

    for (yyjson_val *n; (n = yyjson_arr_iter_next(&it));) {
        yyjson_val *multus = yyjson_obj_get(n, "multus");
        const char *attachment = yyjson_get_str(yyjson_obj_get(multus, "networkName"));
        yyjson_val *interface =
            find_named(interfaces, "name", yyjson_get_str(yyjson_obj_get(n, "name")));

        if (attachment && interface && !yyjson_get_bool(yyjson_obj_get(multus, "default"))) {
            enum network_answer a = judge(vmi, interface, attachment, attached);

            most = a > most ? a : most;
        }
    }
    return most;
}

enum network_answer network_evaluate(const struct api_vmi *vmi, const struct api_pod *pod,
                                     int64_t now_ms)
{
    const struct api_map *notes = pod ? &pod->meta.annotations : NULL;
    const char *status = notes ? api_map_get(notes, ANNOTATION_NETWORK_STATUS) : NULL;
    api_cleanup_doc yyjson_doc *multus = status ? yyjson_read(status, strlen(status), 0) : NULL;
    struct attached attached = {.multus = yyjson_doc_get_root(multus)};

    (void)wire_networks_read(notes ? api_map_get(notes, ANNOTATION_NETWORKS) : NULL, &attached.ours,
                             NULL); /* what cannot be read attaches nothing */
    enum network_answer a = vmi->spec && vmi->status ? judge_all(vmi, &attached) : NETWORK_UNKNOWN;
    const struct api_condition *c =
        api_condition_find(&vmi->conditions, CONDITION_MIGRATION_REQUIRED);

    if (a == NETWORK_PENDING && c) {
        bool waited = ferry_streq(c->status, "False") && now_ms - c->last_transition_ms > GRACE_MS;

        /* Once it is True it stays so until there is nothing left to do. */
        a = waited || ferry_streq(c->status, "True") ? NETWORK_MOVE : a;
    }
    return a;
}

void network_decide(const struct api_object *vmi, const struct api_object *pod, int64_t now_ms,
                    struct plan *ret)
{
    const struct api_vmi *v = &vmi->u.vmi;
    const struct api_condition *c =
        api_condition_find(&v->conditions, CONDITION_MIGRATION_REQUIRED);

    *ret = (struct plan){.rule = "network"};
    if (!vmi_has_phase(v, PHASE_RUNNING) || v->meta.deleted_ms || vmi_is_migrating(v)) {
        return;
    }
    enum network_answer a = network_evaluate(v, pod ? &pod->u.pod : NULL, now_ms);
    if (a == NETWORK_UNKNOWN && !c) {
        return;
    }
    struct api_patch *p = api_patch_new();
    plan_guard(p, vmi);
    bool changed = a == NETWORK_UNKNOWN
                       ? plan_remove_condition(p, &v->conditions, CONDITION_MIGRATION_REQUIRED)
                       : plan_set_condition(p, vmi, &v->conditions,
                                            &(struct plan_condition){
                                                .type = CONDITION_MIGRATION_REQUIRED,
                                                .status = a == NETWORK_MOVE ? "True" : "False",
                                                .reason = "AutoMigrationDueToLiveUpdate",
                                                .message = "secondary networks changed"},
                                            now_ms);
    if (changed) {
        plan_patch_status(ret, vmi, p);
    } else {
        api_patch_free(p);
    }
    if (a == NETWORK_PENDING) {
        plan_again(ret, RECHECK_MS);
    }
}
