/* How rows of tables are written: ROW_TYPE(path, struct, member...). Between the files that hold
 * tables. */
#pragma once

#include "api/codec.h"
#include "api/kinds.h"

/* clang-format off */
#define ROW_(p, t, s, m) .path = (p), .type = (t), .offset = offsetof(struct s, m)
#define ROW_STR(p, s, m) {ROW_(p, API_FIELD_STR, s, m)}
#define ROW_BOOL(p, s, m) {ROW_(p, API_FIELD_BOOL, s, m)}
#define ROW_INT(p, s, m, absent) {ROW_(p, API_FIELD_INT, s, m), .arg = (absent)}
#define ROW_TIME(p, s, m) {ROW_(p, API_FIELD_TIME, s, m)}
#define ROW_QUANTITY(p, s, m, scale) {ROW_(p, API_FIELD_QUANTITY, s, m), .arg = (scale)}
#define ROW_MAP(p, s, m) {ROW_(p, API_FIELD_MAP, s, m)}
#define ROW_STRINGS(p, s, m) {ROW_(p, API_FIELD_STRINGS, s, m)}
#define ROW_INTS(p, s, m) {ROW_(p, API_FIELD_INTS, s, m)}
#define ROW_RAW(p, s, m) {ROW_(p, API_FIELD_RAW, s, m)}
#define ROW_PRESENT(p, s, m) {ROW_(p, API_FIELD_PRESENT, s, m)}
#define ROW_MARK(p, s, m, value) {ROW_(p, API_FIELD_MARK, s, m), .arg = (value)}
#define ROW_STRUCT(p, s, m, t) {ROW_(p, API_FIELD_STRUCT, s, m), .table = (t)}
#define ROW_PORTS(p, s, m, n) {ROW_(p, API_FIELD_PORTS, s, m), .count_offset = offsetof(struct s, n)}
#define ROW_LIST(p, s, m, n, t, item) \
    {ROW_(p, API_FIELD_LIST, s, m), .count_offset = offsetof(struct s, n), .table = (t), \
     .item_size = sizeof(struct item)}
#define ROW_END {.path = NULL}
/* a field and whether it is there: what a pointer is in Go */
#define ROW_OPTIONAL(row, p, s, has) row, ROW_PRESENT(p, s, has)
/* a struct and whether it is there */
#define ROW_PART(p, s, m, t) ROW_STRUCT(p, s, m, t), ROW_PRESENT(p, s, m.present)
#define ROW_CONDITIONS(s) \
    ROW_LIST("status.conditions", s, conditions.items, conditions.n, &api_condition_table, \
           api_condition)

/* spec fields that pods and VMIs place themselves by, below `prefix` */
#define ROW_AFFINITY(prefix, s, m) \
    ROW_LIST(prefix "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution" \
           ".nodeSelectorTerms", s, m.affinity.node_required, m.affinity.n_node_required, \
           &api_node_term_table, api_node_term), \
    ROW_LIST(prefix "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", s, \
           m.affinity.node_preferred, m.affinity.n_node_preferred, &api_node_preference_table, \
           api_node_term), \
    ROW_LIST(prefix "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", s, \
           m.affinity.pods.required, m.affinity.pods.n_required, &api_pod_term_table, \
           api_pod_term), \
    ROW_LIST(prefix "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution", s, \
           m.affinity.pods.preferred, m.affinity.pods.n_preferred, &api_pod_preference_table, \
           api_pod_term), \
    ROW_LIST(prefix "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", s, \
           m.affinity.anti.required, m.affinity.anti.n_required, &api_pod_term_table, \
           api_pod_term), \
    ROW_LIST(prefix "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution", s, \
           m.affinity.anti.preferred, m.affinity.anti.n_preferred, &api_pod_preference_table, \
           api_pod_term)
#define ROW_PLACEMENT(prefix, s, m) \
    ROW_AFFINITY(prefix, s, m), \
    ROW_LIST(prefix "tolerations", s, m.tolerations, m.n_tolerations, &api_toleration_table, \
           api_toleration), \
    ROW_LIST(prefix "topologySpreadConstraints", s, m.spreads, m.n_spreads, &api_spread_table, \
           api_spread), \
    ROW_STR(prefix "schedulerName", s, m.scheduler), \
    ROW_STR(prefix "priorityClassName", s, m.priority_class)
/* clang-format on */

extern struct api_table api_meta_table, api_condition_table, api_node_term_table,
    api_node_preference_table, api_pod_term_table, api_pod_preference_table, api_toleration_table,
    api_spread_table;

extern struct api_table api_namespace_table, api_node_table, api_pod_table, api_quota_table,
    api_event_table, api_config_map_table, api_secret_table, api_lease_table, api_claim_table,
    api_volume_table, api_storage_class_table, api_storage_profile_table, api_network_table;

extern struct api_table api_vmi_table, api_vm_table, api_migration_table, api_policy_table,
    api_kubevirt_table;
