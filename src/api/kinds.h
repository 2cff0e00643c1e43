/* The Kubernetes and KubeVirt objects that Ferry reads, as C values.
 *
 * Decoded from JSON by tables (kinds.c); strings, maps and raw values point into the parsed
 * document that the object keeps, so an object is valid as long as it is referenced and never
 * changes: decide functions read these structs and nothing else. Only fields that some code reads
 * are here; writes are patches, so unknown fields survive.
 *
 * Absent strings are NULL, absent times 0 (unix milliseconds), absent numbers 0 unless a has_ flag
 * says otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

struct api_pair {
    const char *key, *value;
};
struct api_map {
    const struct api_pair *items;
    size_t n;
};
/* NULL when absent. */
const char *api_map_get(const struct api_map *map, const char *key);

struct api_strings {
    const char *const *items;
    size_t n;
};

struct api_owner {
    const char *api_version, *kind, *name, *uid;
    bool controller;
};

struct api_meta {
    const char *name, *namespace_, *uid, *resource_version, *generate_name;
    int64_t created_ms, deleted_ms; /* deleted_ms: deletionTimestamp; 0 = not being deleted */
    struct api_map labels, annotations;
    struct api_strings finalizers;
    const struct api_owner *owners;
    size_t n_owners;
};

struct api_condition {
    const char *type, *status, *reason, *message;
    int64_t last_transition_ms;
};
struct api_conditions {
    const struct api_condition *items;
    size_t n;
};
const struct api_condition *api_condition_find(const struct api_conditions *list, const char *type);
bool api_condition_true(const struct api_conditions *list, const char *type);

/* ---- core -------------------------------------------------------------------------------------
 */

struct api_node {
    struct api_meta meta;
    bool unschedulable;
    int64_t cpu_milli, memory_bytes, pods; /* status.allocatable */
    struct api_conditions conditions;
    const char *internal_ip; /* first status.addresses of type InternalIP */
};

struct api_pod {
    struct api_meta meta;
    const char *node_name, *phase, *reason, *message, *pod_ip;
    int64_t grace_s;                 /* spec.terminationGracePeriodSeconds, 30 when absent */
    int64_t cpu_milli, memory_bytes; /* sum of the containers' requests */
    struct api_map node_selector;
    const yyjson_val *affinity;   /* spec.affinity, raw */
    const yyjson_val *containers; /* spec.containers, raw */
    const yyjson_val *volumes;    /* spec.volumes, raw */
    struct api_conditions conditions;
    bool container_running, container_ready; /* of container "compute" */
    int64_t exit_code;
    bool has_exit_code;
};

/* ---- kubevirt.io/v1 ----------------------------------------------------------------------------
 */

struct api_port { /* one entry of targetDirectMigrationNodePorts: TCP port -> logical channel */
    int port, logical;
};

/* Resolved policy: migrationState.migrationConfiguration (facts: VMIMConfigurationOptions). */
struct api_migration_config {
    bool present;
    bool allow_auto_converge, allow_post_copy, allow_workload_disruption, disable_tls,
        unsafe_migration_override;
    bool has_allow_workload_disruption;
    int64_t bandwidth_bytes_per_s; /* 0 = unlimited */
    int64_t completion_timeout_per_gib_s, progress_timeout_s;
    const yyjson_val *raw;
};

struct api_migration_state { /* VMI status.migrationState */
    bool present;
    const char *uid, *source_node, *source_pod, *target_node, *target_pod, *target_address;
    const struct api_port *ports;
    size_t n_ports;
    bool target_domain_detected, completed, failed, abort_requested;
    const char *abort_status, *failure_reason, *mode;
    int64_t start_ms, end_ms, target_domain_ready_ms;
    struct api_migration_config config;
};

struct api_vmi {
    struct api_meta meta;
    /* spec */
    const yyjson_val *spec; /* raw; the launcher's domain XML reads it */
    int64_t
        memory_bytes; /* guest memory: domain.memory.guest or domain.resources.requests.memory */
    int64_t vcpus;    /* sockets*cores*threads, 1 when absent */
    struct api_map node_selector;
    const char *eviction_strategy;
    int64_t grace_s; /* terminationGracePeriodSeconds, 30 when absent */
    /* status */
    const char *phase, *node_name, *reason, *migration_method, *migration_transport;
    struct api_map active_pods; /* pod UID -> node */
    struct api_conditions conditions;
    struct api_migration_state migration;
    const yyjson_val *status; /* raw */
};

struct api_phase_time {
    const char *phase;
    int64_t at_ms;
};

struct api_migration { /* VirtualMachineInstanceMigration */
    struct api_meta meta;
    const char *vmi_name, *priority;
    struct api_map added_node_selector;
    /* status */
    const char *phase; /* "" when unset, never NULL */
    struct api_conditions conditions;
    const struct api_phase_time *phase_times;
    size_t n_phase_times;
    const char *source_pod; /* status.migrationState.sourcePod */
    struct api_migration_state state;
};

struct api_lease {
    struct api_meta meta;
    const char *holder;
    int64_t duration_s, renew_ms;
};

/* ---- objects -----------------------------------------------------------------------------------
 */

enum api_kind {
    API_KIND_NONE, /* parsed, not decoded: only meta is set */
    API_KIND_NODE,
    API_KIND_POD,
    API_KIND_VMI,
    API_KIND_MIGRATION,
    API_KIND_LEASE,
    API_KIND_COUNT
};

/* One immutable object: the document and its decoded form. Reference-counted, any thread. */
struct api_object {
    enum api_kind kind;
    const yyjson_val *root; /* the JSON object */
    const struct api_meta *meta;
    union {
        struct api_meta bare;
        struct api_node node;
        struct api_pod pod;
        struct api_vmi vmi;
        struct api_migration migration;
        struct api_lease lease;
    } u;
};
