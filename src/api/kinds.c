/* The tables: one row per field that Ferry reads, and the few values that take more than a row. */
#include <stdlib.h>
#include <string.h>

#include "api/codec.h"
#include "api/decode.h"
#include "api/json.h"
#include "api/kinds.h"
#include "api/object.h"
#include "base/str.h"

#define F_(p, t, s, m) .path = (p), .type = (t), .offset = offsetof(struct s, m)
#define STR(p, s, m)                                                                               \
    {                                                                                              \
        F_(p, API_FIELD_STR, s, m)                                                                 \
    }
#define BOOL(p, s, m)                                                                              \
    {                                                                                              \
        F_(p, API_FIELD_BOOL, s, m)                                                                \
    }
#define INT(p, s, m, absent)                                                                       \
    {                                                                                              \
        F_(p, API_FIELD_INT, s, m), .arg = (absent)                                                \
    }
#define TIME(p, s, m)                                                                              \
    {                                                                                              \
        F_(p, API_FIELD_TIME, s, m)                                                                \
    }
#define QUANTITY(p, s, m, scale)                                                                   \
    {                                                                                              \
        F_(p, API_FIELD_QUANTITY, s, m), .arg = (scale)                                            \
    }
#define MAP(p, s, m)                                                                               \
    {                                                                                              \
        F_(p, API_FIELD_MAP, s, m)                                                                 \
    }
#define STRINGS(p, s, m)                                                                           \
    {                                                                                              \
        F_(p, API_FIELD_STRINGS, s, m)                                                             \
    }
#define RAW(p, s, m)                                                                               \
    {                                                                                              \
        F_(p, API_FIELD_RAW, s, m)                                                                 \
    }
#define PRESENT(p, s, m)                                                                           \
    {                                                                                              \
        F_(p, API_FIELD_PRESENT, s, m)                                                             \
    }
#define STRUCT(p, s, m, t)                                                                         \
    {                                                                                              \
        F_(p, API_FIELD_STRUCT, s, m), .table = (t)                                                \
    }
#define PORTS(p, s, m, n)                                                                          \
    {                                                                                              \
        F_(p, API_FIELD_PORTS, s, m), .count_offset = offsetof(struct s, n)                        \
    }
#define LIST(p, s, m, n, t, item)                                                                  \
    {                                                                                              \
        F_(p, API_FIELD_LIST, s, m), .count_offset = offsetof(struct s, n), .table = (t),          \
                                     .item_size = sizeof(struct item)                              \
    }
#define END                                                                                        \
    {                                                                                              \
        .path = NULL                                                                               \
    }

/* clang-format off */
static const struct api_field owner_fields[] = {
    STR("apiVersion", api_owner, api_version),
    STR("kind", api_owner, kind),
    STR("name", api_owner, name),
    STR("uid", api_owner, uid),
    BOOL("controller", api_owner, controller),
    END,
};

static const struct api_field meta_fields[] = {
    STR("metadata.name", api_meta, name),
    STR("metadata.namespace", api_meta, namespace_),
    STR("metadata.uid", api_meta, uid),
    STR("metadata.resourceVersion", api_meta, resource_version),
    STR("metadata.generateName", api_meta, generate_name),
    TIME("metadata.creationTimestamp", api_meta, created_ms),
    TIME("metadata.deletionTimestamp", api_meta, deleted_ms),
    MAP("metadata.labels", api_meta, labels),
    MAP("metadata.annotations", api_meta, annotations),
    STRINGS("metadata.finalizers", api_meta, finalizers),
    LIST("metadata.ownerReferences", api_meta, owners, n_owners, owner_fields, api_owner),
    END,
};

static const struct api_field condition_fields[] = {
    STR("type", api_condition, type),
    STR("status", api_condition, status),
    STR("reason", api_condition, reason),
    STR("message", api_condition, message),
    TIME("lastTransitionTime", api_condition, last_transition_ms),
    END,
};
#define CONDITIONS(s) \
    LIST("status.conditions", s, conditions.items, conditions.n, condition_fields, api_condition)

static const struct api_field node_fields[] = {
    BOOL("spec.unschedulable", api_node, unschedulable),
    QUANTITY("status.allocatable.cpu", api_node, cpu_milli, 1000),
    QUANTITY("status.allocatable.memory", api_node, memory_bytes, 1),
    QUANTITY("status.allocatable.pods", api_node, pods, 1),
    CONDITIONS(api_node),
    END,
};

static const struct api_field pod_fields[] = {
    STR("spec.nodeName", api_pod, node_name),
    INT("spec.terminationGracePeriodSeconds", api_pod, grace_s, 30),
    MAP("spec.nodeSelector", api_pod, node_selector),
    RAW("spec.affinity", api_pod, affinity),
    RAW("spec.containers", api_pod, containers),
    RAW("spec.volumes", api_pod, volumes),
    STR("status.phase", api_pod, phase),
    STR("status.reason", api_pod, reason),
    STR("status.message", api_pod, message),
    STR("status.podIP", api_pod, pod_ip),
    CONDITIONS(api_pod),
    END,
};

static const struct api_field config_fields[] = {
    BOOL("allowAutoConverge", api_migration_config, allow_auto_converge),
    BOOL("allowPostCopy", api_migration_config, allow_post_copy),
    BOOL("allowWorkloadDisruption", api_migration_config, allow_workload_disruption),
    PRESENT("allowWorkloadDisruption", api_migration_config, has_allow_workload_disruption),
    BOOL("disableTLS", api_migration_config, disable_tls),
    BOOL("unsafeMigrationOverride", api_migration_config, unsafe_migration_override),
    QUANTITY("bandwidthPerMigration", api_migration_config, bandwidth_bytes_per_s, 1),
    INT("completionTimeoutPerGiB", api_migration_config, completion_timeout_per_gib_s, 0),
    INT("progressTimeout", api_migration_config, progress_timeout_s, 0),
    END,
};

static const struct api_field state_fields[] = {
    STR("migrationUid", api_migration_state, uid),
    STR("sourceNode", api_migration_state, source_node),
    STR("sourcePod", api_migration_state, source_pod),
    STR("targetNode", api_migration_state, target_node),
    STR("targetPod", api_migration_state, target_pod),
    STR("targetNodeAddress", api_migration_state, target_address),
    PORTS("targetDirectMigrationNodePorts", api_migration_state, ports, n_ports),
    BOOL("targetNodeDomainDetected", api_migration_state, target_domain_detected),
    TIME("targetNodeDomainReadyTimestamp", api_migration_state, target_domain_ready_ms),
    TIME("startTimestamp", api_migration_state, start_ms),
    TIME("endTimestamp", api_migration_state, end_ms),
    BOOL("completed", api_migration_state, completed),
    BOOL("failed", api_migration_state, failed),
    STR("failureReason", api_migration_state, failure_reason),
    BOOL("abortRequested", api_migration_state, abort_requested),
    STR("abortStatus", api_migration_state, abort_status),
    STR("mode", api_migration_state, mode),
    STRUCT("migrationConfiguration", api_migration_state, config, config_fields),
    PRESENT("migrationConfiguration", api_migration_state, config.present),
    RAW("migrationConfiguration", api_migration_state, config.raw),
    END,
};
#define MIGRATION_STATE(s, m) \
    STRUCT("status.migrationState", s, m, state_fields), \
    PRESENT("status.migrationState", s, m.present)

static const struct api_field vmi_fields[] = {
    RAW("spec", api_vmi, spec),
    RAW("status", api_vmi, status),
    MAP("spec.nodeSelector", api_vmi, node_selector),
    STR("spec.evictionStrategy", api_vmi, eviction_strategy),
    INT("spec.terminationGracePeriodSeconds", api_vmi, grace_s, 30),
    /* the guest's memory wins over what is requested for it */
    QUANTITY("spec.domain.resources.requests.memory", api_vmi, memory_bytes, 1),
    QUANTITY("spec.domain.memory.guest", api_vmi, memory_bytes, 1),
    STR("status.phase", api_vmi, phase),
    STR("status.nodeName", api_vmi, node_name),
    STR("status.reason", api_vmi, reason),
    STR("status.migrationMethod", api_vmi, migration_method),
    STR("status.migrationTransport", api_vmi, migration_transport),
    MAP("status.activePods", api_vmi, active_pods),
    CONDITIONS(api_vmi),
    MIGRATION_STATE(api_vmi, migration),
    END,
};

static const struct api_field phase_time_fields[] = {
    STR("phase", api_phase_time, phase),
    TIME("phaseTransitionTimestamp", api_phase_time, at_ms),
    END,
};

static const struct api_field migration_fields[] = {
    STR("spec.vmiName", api_migration, vmi_name),
    STR("spec.priority", api_migration, priority),
    MAP("spec.addedNodeSelector", api_migration, added_node_selector),
    STR("status.phase", api_migration, phase),
    LIST("status.phaseTransitionTimestamps", api_migration, phase_times, n_phase_times,
         phase_time_fields, api_phase_time),
    CONDITIONS(api_migration),
    MIGRATION_STATE(api_migration, state),
    END,
};

static const struct api_field lease_fields[] = {
    STR("spec.holderIdentity", api_lease, holder),
    INT("spec.leaseDurationSeconds", api_lease, duration_s, 0),
    TIME("spec.renewTime", api_lease, renew_ms),
    END,
};
/* clang-format on */

/* ---- what takes more than a row ----------------------------------------------------------------
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

static int add_request(yyjson_val *container, const char *pointer, int64_t scale, int64_t *sum,
                       struct ferry_error *err)
{
    yyjson_val *v = yyjson_ptr_get(container, pointer);
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

static int finish_pod(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_pod *pod = out;
    yyjson_val *list = yyjson_ptr_get((yyjson_val *)root, "/status/containerStatuses"), *c;
    size_t i, max;

    yyjson_arr_foreach((yyjson_val *)pod->containers, i, max, c)
    {
        if (add_request(c, "/resources/requests/cpu", 1000, &pod->cpu_milli, err) < 0) {
            return ferry_wrap(err, "spec.containers[%zu].resources.requests.cpu", i);
        }
        if (add_request(c, "/resources/requests/memory", 1, &pod->memory_bytes, err) < 0) {
            return ferry_wrap(err, "spec.containers[%zu].resources.requests.memory", i);
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
    }
    return 0;
}

static int finish_vmi(const yyjson_val *root, void *out, struct ferry_error *err)
{
    static const char *const parts[] = {"sockets", "cores", "threads"};
    struct api_vmi *vmi = out;
    yyjson_val *cpu = yyjson_ptr_get((yyjson_val *)root, "/spec/domain/cpu");

    vmi->vcpus = 1;
    for (size_t i = 0; i < 3; i++) {
        yyjson_val *v = yyjson_obj_get(cpu, parts[i]);
        int64_t n;

        if (!v || yyjson_is_null(v)) {
            continue;
        }
        if (!api_json_get_int(v, &n) || n < 0 || n > 4096) {
            return ferry_fail(err, FERRY_INVALID,
                              "spec.domain.cpu.%s: must be a whole number from 1 to 4096",
                              parts[i]);
        }
        vmi->vcpus *= n ? n : 1;
    }
    return 0;
}

static int finish_migration(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_migration *m = out;

    (void)root;
    (void)err;
    m->phase = m->phase ? m->phase : "";
    m->source_pod = m->state.source_pod;
    return 0;
}

static const struct {
    const struct api_field *fields;
    int (*finish)(const yyjson_val *root, void *out, struct ferry_error *err);
} kinds[] = {
    [API_KIND_NONE] = {NULL, NULL},
    [API_KIND_NODE] = {node_fields, finish_node},
    [API_KIND_POD] = {pod_fields, finish_pod},
    [API_KIND_VMI] = {vmi_fields, finish_vmi},
    [API_KIND_MIGRATION] = {migration_fields, finish_migration},
    [API_KIND_LEASE] = {lease_fields, NULL},
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == API_KIND_COUNT, "one row per kind");

int api_kind_decode(enum api_kind kind, const yyjson_val *root, struct api_arena *arena,
                    struct api_object *out, struct ferry_error *err)
{
    /* Every kind's struct begins with its meta. */
    int rc = api_codec_decode(meta_fields, root, &out->u.bare, arena, err);

    if (rc == 0 && kinds[kind].fields) {
        rc = api_codec_decode(kinds[kind].fields, root, &out->u, arena, err);
    }
    if (rc == 0 && kinds[kind].finish) {
        rc = kinds[kind].finish(root, &out->u, err);
    }
    return rc;
}

const char *api_map_get(const struct api_map *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++) {
        if (strcmp(map->items[i].key, key) == 0) {
            return map->items[i].value;
        }
    }
    return NULL;
}

const struct api_condition *api_condition_find(const struct api_conditions *list, const char *type)
{
    for (size_t i = 0; i < list->n; i++) {
        if (ferry_streq(list->items[i].type, type)) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool api_condition_true(const struct api_conditions *list, const char *type)
{
    const struct api_condition *c = api_condition_find(list, type);

    return c && ferry_streq(c->status, "True");
}
