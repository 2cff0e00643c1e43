/* Kubernetes' own kinds: core, storage, leases, networks. */
#pragma once

#include "api/kinds_meta.h"

/* ---- selectors and placement, as pods and VMIs have them --------------------------------------
 */

struct api_expression { /* matchExpressions, matchFields: In, NotIn, Exists, DoesNotExist, Gt, Lt */
    const char *key, *op;
    struct api_strings values;
};

struct api_label_selector {
    bool present; /* absent selects nothing, empty selects everything */
    struct api_map match_labels;
    const struct api_expression *expressions;
    size_t n_expressions;
};

struct api_node_term { /* all of its expressions must hold */
    const struct api_expression *expressions, *fields;
    size_t n_expressions, n_fields;
    int64_t weight; /* of a preferred one */
};

struct api_pod_term {
    struct api_label_selector selector;
    struct api_strings namespaces;
    const char *topology_key;
    int64_t weight; /* of a preferred one */
};
struct api_pod_terms {
    const struct api_pod_term *required, *preferred;
    size_t n_required, n_preferred;
};

struct api_affinity {
    const struct api_node_term *node_required, *node_preferred; /* required: one term must hold */
    size_t n_node_required, n_node_preferred;
    struct api_pod_terms pods, anti;
};

struct api_taint {
    const char *key, *value, *effect;
};

struct api_toleration {
    const char *key, *op, *value, *effect;
    int64_t seconds;
    bool has_seconds;
};

struct api_spread { /* topologySpreadConstraints */
    int64_t max_skew, min_domains;
    const char *topology_key, *when_unsatisfiable;
    struct api_label_selector selector;
};

struct api_placement {
    struct api_affinity affinity;
    const struct api_toleration *tolerations;
    const struct api_spread *spreads;
    size_t n_tolerations, n_spreads;
    const char *scheduler, *priority_class;
};

/* ---- cluster ----------------------------------------------------------------------------------
 */

struct api_namespace {
    struct api_meta meta;
    const char *phase;
};

struct api_node {
    struct api_meta meta;
    bool unschedulable;
    const struct api_taint *taints;
    size_t n_taints;
    int64_t cpu_milli, memory_bytes, pods; /* status.allocatable */
    int64_t hugepages_2mi_bytes, hugepages_1gi_bytes;
    const yyjson_val *allocatable; /* raw: extended resources are in here, too */
    struct api_conditions conditions;
    const char *internal_ip; /* first status.addresses of type InternalIP */
    int64_t kubelet_port;
};

struct api_pod {
    struct api_meta meta;
    const char *node_name, *phase, *reason, *message, *pod_ip;
    int64_t grace_s;                 /* spec.terminationGracePeriodSeconds, 30 when absent */
    int64_t cpu_milli, memory_bytes; /* sum of the containers' requests */
    int64_t hugepages_2mi_bytes, hugepages_1gi_bytes;
    int64_t start_ms;
    struct api_map node_selector;
    struct api_placement placement;
    const yyjson_val *affinity;   /* spec.affinity, raw */
    const yyjson_val *containers; /* spec.containers, raw */
    const yyjson_val *volumes;    /* spec.volumes, raw */
    struct api_conditions conditions;
    bool container_running, container_ready; /* of container "compute" */
    int64_t exit_code;
    bool has_exit_code;
    const char *end_reason; /* why it ended; NULL = it did not, or nobody says */
    /* Of the first container, also one that comes before, that waits for more than its turn. */
    const char *waiting_reason, *waiting_message;
};

struct api_quota { /* ResourceQuota */
    struct api_meta meta;
    const yyjson_val *hard, *used; /* spec.hard, status.used: objects of quantities */
};

struct api_event {
    struct api_meta meta;
    const char *about_kind, *about_ns, *about_name, *about_uid; /* involvedObject */
    const char *type, *reason, *message, *component, *host;
    const char *action; /* of a move that failed: the code */
    int64_t count, first_ms, last_ms;
};

struct api_config_map {
    struct api_meta meta;
    struct api_map data;
};

struct api_secret {
    struct api_meta meta;
    const char *type;
    struct api_map data; /* base64 */
};

struct api_lease {
    struct api_meta meta;
    const char *holder;
    int64_t duration_s, acquire_ms, renew_ms, transitions;
};

/* ---- storage and networks ---------------------------------------------------------------------
 */

struct api_claim { /* PersistentVolumeClaim */
    struct api_meta meta;
    const char *storage_class, *volume_mode, *volume_name; /* volume_mode: never NULL */
    struct api_strings access_modes;                       /* asked for */
    int64_t request_bytes;
    const char *phase;
    struct api_strings bound_access_modes; /* status.accessModes */
    int64_t capacity_bytes;
    struct api_conditions conditions;
};

struct api_volume { /* PersistentVolume */
    struct api_meta meta;
    const char *storage_class, *volume_mode, *reclaim_policy, *phase; /* volume_mode: never NULL */
    struct api_strings access_modes;
    int64_t capacity_bytes;
    const char *claim_ns, *claim_name, *claim_uid;
    const struct api_node_term *node_terms; /* nodeAffinity.required; one must hold; none = any */
    size_t n_node_terms;
    const char *path; /* local.path or hostPath.path */
};

struct api_storage_class {
    struct api_meta meta;
    const char *provisioner, *reclaim_policy, *binding_mode;
    bool allow_expansion;
};

struct api_claim_property {
    struct api_strings access_modes;
    const char *volume_mode;
};
struct api_storage_profile { /* of CDI; named after its StorageClass */
    struct api_meta meta;
    const struct api_claim_property *wanted, *properties; /* of spec; of status: what is in force */
    size_t n_wanted, n_properties;
    const char *provisioner, *storage_class, *clone_strategy;
};

struct api_network { /* NetworkAttachmentDefinition */
    struct api_meta meta;
    const char *config; /* JSON text of the CNI plugin */
};
