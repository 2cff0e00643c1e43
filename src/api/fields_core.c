/* The tables of metadata and of Kubernetes' own kinds. */
#include <string.h>

#include "api/fields.h"
#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

/* clang-format off */
static struct api_table owner_table = {.rows = (const struct api_field[]){
    ROW_STR("apiVersion", api_owner, api_version),
    ROW_STR("kind", api_owner, kind),
    ROW_STR("name", api_owner, name),
    ROW_STR("uid", api_owner, uid),
    ROW_BOOL("controller", api_owner, controller),
    ROW_END,
}};

struct api_table api_meta_table = {.rows = (const struct api_field[]){
    ROW_STR("metadata.name", api_meta, name),
    ROW_STR("metadata.namespace", api_meta, namespace_),
    ROW_STR("metadata.uid", api_meta, uid),
    ROW_STR("metadata.resourceVersion", api_meta, resource_version),
    ROW_STR("metadata.generateName", api_meta, generate_name),
    ROW_INT("metadata.generation", api_meta, generation, 0),
    ROW_TIME("metadata.creationTimestamp", api_meta, created_ms),
    ROW_TIME("metadata.deletionTimestamp", api_meta, deleted_ms),
    ROW_INT("metadata.deletionGracePeriodSeconds", api_meta, deletion_grace_s, 0),
    ROW_MAP("metadata.labels", api_meta, labels),
    ROW_MAP("metadata.annotations", api_meta, annotations),
    ROW_STRINGS("metadata.finalizers", api_meta, finalizers),
    ROW_LIST("metadata.ownerReferences", api_meta, owners, n_owners, &owner_table, api_owner),
    ROW_END,
}};

struct api_table api_condition_table = {.rows = (const struct api_field[]){
    ROW_STR("type", api_condition, type),
    ROW_STR("status", api_condition, status),
    ROW_STR("reason", api_condition, reason),
    ROW_STR("message", api_condition, message),
    ROW_TIME("lastTransitionTime", api_condition, last_transition_ms),
    ROW_TIME("lastProbeTime", api_condition, last_probe_ms),
    ROW_END,
}};

/* ---- placement ------------------------------------------------------------------------------- */

static struct api_table expression_table = {.rows = (const struct api_field[]){
    ROW_STR("key", api_expression, key),
    ROW_STR("operator", api_expression, op),
    ROW_STRINGS("values", api_expression, values),
    ROW_END,
}};

static struct api_table label_selector_table = {.rows = (const struct api_field[]){
    ROW_MAP("matchLabels", api_label_selector, match_labels),
    ROW_LIST("matchExpressions", api_label_selector, expressions, n_expressions, &expression_table,
           api_expression),
    ROW_END,
}};

#define NODE_TERM(prefix) \
    ROW_LIST(prefix "matchExpressions", api_node_term, expressions, n_expressions, \
           &expression_table, api_expression), \
    ROW_LIST(prefix "matchFields", api_node_term, fields, n_fields, &expression_table, api_expression)

struct api_table api_node_term_table = {.rows = (const struct api_field[]){
    NODE_TERM(""),
    ROW_END,
}};

struct api_table api_node_preference_table = {.rows = (const struct api_field[]){
    ROW_INT("weight", api_node_term, weight, 0),
    NODE_TERM("preference."),
    ROW_END,
}};

#define POD_TERM(prefix) \
    ROW_PART(prefix "labelSelector", api_pod_term, selector, &label_selector_table), \
    ROW_STRINGS(prefix "namespaces", api_pod_term, namespaces), \
    ROW_STR(prefix "topologyKey", api_pod_term, topology_key)

struct api_table api_pod_term_table = {.rows = (const struct api_field[]){
    POD_TERM(""),
    ROW_END,
}};

struct api_table api_pod_preference_table = {.rows = (const struct api_field[]){
    ROW_INT("weight", api_pod_term, weight, 0),
    POD_TERM("podAffinityTerm."),
    ROW_END,
}};

struct api_table api_toleration_table = {.rows = (const struct api_field[]){
    ROW_STR("key", api_toleration, key),
    ROW_STR("operator", api_toleration, op),
    ROW_STR("value", api_toleration, value),
    ROW_STR("effect", api_toleration, effect),
    ROW_OPTIONAL(ROW_INT("tolerationSeconds", api_toleration, seconds, 0), "tolerationSeconds",
               api_toleration, has_seconds),
    ROW_END,
}};

struct api_table api_spread_table = {.rows = (const struct api_field[]){
    ROW_INT("maxSkew", api_spread, max_skew, 0),
    ROW_INT("minDomains", api_spread, min_domains, 0),
    ROW_STR("topologyKey", api_spread, topology_key),
    ROW_STR("whenUnsatisfiable", api_spread, when_unsatisfiable),
    ROW_PART("labelSelector", api_spread, selector, &label_selector_table),
    ROW_END,
}};

static struct api_table taint_table = {.rows = (const struct api_field[]){
    ROW_STR("key", api_taint, key),
    ROW_STR("value", api_taint, value),
    ROW_STR("effect", api_taint, effect),
    ROW_END,
}};
/* clang-format on */

/* ---- cluster ----------------------------------------------------------------------------------
 */

static int finish_node(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_node *node = out;
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)root, "/status/addresses"), *a;
    size_t i, max;

    (void)err;
    yyjson_arr_foreach(list, i, max, a)
    {
        if (!node->internal_ip && ferry_streq(api_json_str(a, "/type"), "InternalIP")) {
            node->internal_ip = api_json_str(a, "/address");
        }
    }
    return 0;
}

static int add_request(yyjson_val *requests, const char *name, int64_t scale, int64_t *sum,
                       struct ferry_error *err)
{
    yyjson_val *v = yyjson_obj_get(requests, name);
    int64_t n = 0;

    if (!v) {
        return 0;
    }
    int rc = api_quantity_val(v, scale, &n, err);
    if (rc < 0) {
        return rc;
    }
    if (n < 0 || __builtin_add_overflow(*sum, n, sum)) {
        return ferry_fail(err, FERRY_INVALID, "negative or too large");
    }
    return 0;
}

static int add_requests(struct api_pod *pod, yyjson_val *container, size_t i,
                        struct ferry_error *err)
{
    const struct {
        const char *name;
        int64_t scale, *sum;
    } wanted[] = {{"cpu", 1000, &pod->cpu_milli},
                  {"memory", 1, &pod->memory_bytes},
                  {"hugepages-2Mi", 1, &pod->hugepages_2mi_bytes},
                  {"hugepages-1Gi", 1, &pod->hugepages_1gi_bytes}};
    yyjson_val *requests = yyjson_obj_get(yyjson_obj_get(container, "resources"), "requests");

    for (size_t w = 0; requests && w < FERRY_COUNT(wanted); w++) {
        if (add_request(requests, wanted[w].name, wanted[w].scale, wanted[w].sum, err) < 0) {
            return ferry_wrap_about(err, "spec.containers[%zu].resources.requests.%s", i,
                                    wanted[w].name);
        }
    }
    return 0;
}

static void read_waiting(struct api_pod *pod, yyjson_val *statuses)
{
    yyjson_val *c;
    size_t i, max;

    yyjson_arr_foreach(statuses, i, max, c)
    {
        const char *reason = api_json_str(c, "/state/waiting/reason");

        if (!pod->waiting_reason && !ferry_str_empty(reason) &&
            !ferry_streq(reason, "ContainerCreating") && !ferry_streq(reason, "PodInitializing")) {
            pod->waiting_reason = reason;
            pod->waiting_message = api_json_str(c, "/state/waiting/message");
        }
    }
}

static int finish_pod(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_pod *pod = out;
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)root, "/status/containerStatuses"), *c;
    size_t i, max;

    yyjson_arr_foreach((yyjson_val *)pod->containers, i, max, c)
    {
        int rc = add_requests(pod, c, i, err);

        if (rc < 0) {
            return rc;
        }
    }
    yyjson_arr_foreach(list, i, max, c)
    {
        if (!ferry_streq(api_json_str(c, "/name"), "compute")) {
            continue;
        }
        yyjson_val *code = yyjson_ptr_get(c, "/state/terminated/exitCode");
        pod->container_running = yyjson_is_obj(yyjson_ptr_get(c, "/state/running"));
        pod->container_ready = api_json_bool(c, "/ready", false);
        pod->has_exit_code = api_json_get_int(code, &pod->exit_code);
        pod->end_reason = api_json_str(c, "/state/terminated/reason");
    }
    read_waiting(pod, yyjson_ptr_get((yyjson_val *)root, "/status/initContainerStatuses"));
    read_waiting(pod, list);
    return 0;
}

/* clang-format off */
struct api_table api_namespace_table = {.rows = (const struct api_field[]){
    ROW_STR("status.phase", api_namespace, phase),
    ROW_END,
}};

struct api_table api_node_table = {.finish = finish_node, .rows = (const struct api_field[]){
    ROW_BOOL("spec.unschedulable", api_node, unschedulable),
    ROW_LIST("spec.taints", api_node, taints, n_taints, &taint_table, api_taint),
    ROW_QUANTITY("status.allocatable.cpu", api_node, cpu_milli, 1000),
    ROW_QUANTITY("status.allocatable.memory", api_node, memory_bytes, 1),
    ROW_QUANTITY("status.allocatable.pods", api_node, pods, 1),
    ROW_QUANTITY("status.allocatable.hugepages-2Mi", api_node, hugepages_2mi_bytes, 1),
    ROW_QUANTITY("status.allocatable.hugepages-1Gi", api_node, hugepages_1gi_bytes, 1),
    ROW_RAW("status.allocatable", api_node, allocatable),
    ROW_INT("status.daemonEndpoints.kubeletEndpoint.Port", api_node, kubelet_port, 0),
    ROW_CONDITIONS(api_node),
    ROW_END,
}};

struct api_table api_pod_table = {.finish = finish_pod, .rows = (const struct api_field[]){
    ROW_STR("spec.nodeName", api_pod, node_name),
    ROW_INT("spec.terminationGracePeriodSeconds", api_pod, grace_s, 30),
    ROW_MAP("spec.nodeSelector", api_pod, node_selector),
    ROW_RAW("spec.affinity", api_pod, affinity),
    ROW_PLACEMENT("spec.", api_pod, placement),
    ROW_RAW("spec.containers", api_pod, containers),
    ROW_RAW("spec.volumes", api_pod, volumes),
    ROW_STR("status.phase", api_pod, phase),
    ROW_STR("status.reason", api_pod, reason),
    ROW_STR("status.message", api_pod, message),
    ROW_STR("status.podIP", api_pod, pod_ip),
    ROW_TIME("status.startTime", api_pod, start_ms),
    ROW_CONDITIONS(api_pod),
    ROW_END,
}};

struct api_table api_quota_table = {.rows = (const struct api_field[]){
    ROW_RAW("spec.hard", api_quota, hard),
    ROW_RAW("status.used", api_quota, used),
    ROW_END,
}};

struct api_table api_event_table = {.rows = (const struct api_field[]){
    ROW_STR("involvedObject.kind", api_event, about_kind),
    ROW_STR("involvedObject.namespace", api_event, about_ns),
    ROW_STR("involvedObject.name", api_event, about_name),
    ROW_STR("involvedObject.uid", api_event, about_uid),
    ROW_STR("type", api_event, type),
    ROW_STR("reason", api_event, reason),
    ROW_STR("message", api_event, message),
    ROW_STR("action", api_event, action),
    ROW_STR("source.component", api_event, component),
    ROW_STR("source.host", api_event, host),
    ROW_INT("count", api_event, count, 1),
    ROW_TIME("firstTimestamp", api_event, first_ms),
    ROW_TIME("lastTimestamp", api_event, last_ms),
    ROW_END,
}};

struct api_table api_config_map_table = {.rows = (const struct api_field[]){
    ROW_MAP("data", api_config_map, data),
    ROW_END,
}};

struct api_table api_secret_table = {.rows = (const struct api_field[]){
    ROW_STR("type", api_secret, type),
    ROW_MAP("data", api_secret, data),
    ROW_END,
}};

struct api_table api_lease_table = {.rows = (const struct api_field[]){
    ROW_STR("spec.holderIdentity", api_lease, holder),
    ROW_INT("spec.leaseDurationSeconds", api_lease, duration_s, 0),
    ROW_INT("spec.leaseTransitions", api_lease, transitions, 0),
    ROW_TIME("spec.acquireTime", api_lease, acquire_ms),
    ROW_TIME("spec.renewTime", api_lease, renew_ms),
    ROW_END,
}};

/* ---- storage and networks -------------------------------------------------------------------- */

/* what is not said is a file system */
static int finish_claim(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_claim *claim = out;

    (void)root;
    (void)err;
    claim->volume_mode = claim->volume_mode ? claim->volume_mode : "Filesystem";
    return 0;
}

static int finish_volume(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_volume *volume = out;

    (void)root;
    (void)err;
    volume->volume_mode = volume->volume_mode ? volume->volume_mode : "Filesystem";
    return 0;
}

struct api_table api_claim_table = {.finish = finish_claim, .rows = (const struct api_field[]){
    ROW_STR("spec.storageClassName", api_claim, storage_class),
    ROW_STR("spec.volumeMode", api_claim, volume_mode),
    ROW_STR("spec.volumeName", api_claim, volume_name),
    ROW_STRINGS("spec.accessModes", api_claim, access_modes),
    ROW_QUANTITY("spec.resources.requests.storage", api_claim, request_bytes, 1),
    ROW_STR("status.phase", api_claim, phase),
    ROW_STRINGS("status.accessModes", api_claim, bound_access_modes),
    ROW_QUANTITY("status.capacity.storage", api_claim, capacity_bytes, 1),
    ROW_CONDITIONS(api_claim),
    ROW_END,
}};

struct api_table api_volume_table = {.finish = finish_volume, .rows = (const struct api_field[]){
    ROW_STR("spec.storageClassName", api_volume, storage_class),
    ROW_STR("spec.volumeMode", api_volume, volume_mode),
    ROW_STR("spec.persistentVolumeReclaimPolicy", api_volume, reclaim_policy),
    ROW_STRINGS("spec.accessModes", api_volume, access_modes),
    ROW_QUANTITY("spec.capacity.storage", api_volume, capacity_bytes, 1),
    ROW_STR("spec.claimRef.namespace", api_volume, claim_ns),
    ROW_STR("spec.claimRef.name", api_volume, claim_name),
    ROW_STR("spec.claimRef.uid", api_volume, claim_uid),
    ROW_LIST("spec.nodeAffinity.required.nodeSelectorTerms", api_volume, node_terms, n_node_terms,
           &api_node_term_table, api_node_term),
    ROW_STR("spec.local.path", api_volume, path),
    ROW_STR("spec.hostPath.path", api_volume, path),
    ROW_STR("status.phase", api_volume, phase),
    ROW_END,
}};

struct api_table api_storage_class_table = {.rows = (const struct api_field[]){
    ROW_STR("provisioner", api_storage_class, provisioner),
    ROW_STR("reclaimPolicy", api_storage_class, reclaim_policy),
    ROW_STR("volumeBindingMode", api_storage_class, binding_mode),
    ROW_BOOL("allowVolumeExpansion", api_storage_class, allow_expansion),
    ROW_END,
}};

static struct api_table claim_property_table = {.rows = (const struct api_field[]){
    ROW_STRINGS("accessModes", api_claim_property, access_modes),
    ROW_STR("volumeMode", api_claim_property, volume_mode),
    ROW_END,
}};

struct api_table api_storage_profile_table = {.rows = (const struct api_field[]){
    ROW_LIST("spec.claimPropertySets", api_storage_profile, wanted, n_wanted, &claim_property_table,
           api_claim_property),
    ROW_LIST("status.claimPropertySets", api_storage_profile, properties, n_properties,
           &claim_property_table, api_claim_property),
    ROW_STR("status.provisioner", api_storage_profile, provisioner),
    ROW_STR("status.storageClass", api_storage_profile, storage_class),
    ROW_STR("status.cloneStrategy", api_storage_profile, clone_strategy),
    ROW_END,
}};

struct api_table api_network_table = {.rows = (const struct api_field[]){
    ROW_STR("spec.config", api_network, config),
    ROW_END,
}};
/* clang-format on */
