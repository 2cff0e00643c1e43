/* KubeVirt's kinds: kubevirt.io/v1 and migrations.kubevirt.io/v1alpha1. */
#pragma once

#include "api/kinds_core.h"

/* ---- how moves are made -----------------------------------------------------------------------
 */

struct api_stall_detector {
    bool present;
    int64_t stall_margin_percent, stall_progress_timeout_s, switchover_timeout_s;
    int64_t ewma_alpha_milli, precopy_possible_factor_milli, patience_decay_factor_milli,
        completion_timeout_factor_milli;
    bool search_local_minima, has_search_local_minima, has_stall_margin_percent,
        has_ewma_alpha_milli, has_stall_progress_timeout_s, has_switchover_timeout_s,
        has_precopy_possible_factor_milli, has_patience_decay_factor_milli,
        has_completion_timeout_factor_milli;
};

struct api_downtime_tuning {
    bool present;
    int64_t initial_ms, steps, start_after_iteration, cooldown_s;
    bool has_initial_ms, has_steps, has_start_after_iteration, has_cooldown_s;
};

struct api_migration_experimental {
    struct api_stall_detector stall_detector;
    struct api_downtime_tuning downtime_tuning;
    const char *compression; /* "none", "zstd" */
};

/* MigrationConfiguration of the KubeVirt object, the overrides of a policy, and the resolved copy
 * in migrationState (VMIMConfigurationOptions). What a pointer is in KubeVirt has a has_ flag. */
struct api_migration_config {
    bool present;
    bool allow_auto_converge, allow_post_copy, allow_workload_disruption, disable_tls,
        unsafe_migration_override, match_selinux_level;
    bool has_allow_auto_converge, has_allow_post_copy, has_allow_workload_disruption,
        has_disable_tls, has_unsafe_migration_override, has_match_selinux_level;
    int64_t bandwidth_bytes_per_s; /* 0 = unlimited */
    int64_t completion_timeout_per_gib_s, progress_timeout_s, max_downtime_ms,
        utility_volumes_timeout_s;
    bool has_bandwidth, has_completion_timeout_per_gib, has_progress_timeout, has_max_downtime,
        has_utility_volumes_timeout;
    int64_t parallel_per_cluster, parallel_outbound_per_node;
    bool has_parallel_per_cluster, has_parallel_outbound_per_node;
    const char *node_drain_taint_key, *network;
    struct api_migration_experimental experimental;
    const yyjson_val *raw;
};

struct api_port { /* one entry of targetDirectMigrationNodePorts: TCP port -> logical channel */
    int port, logical;
};

struct api_migration_end { /* sourceState or targetState of a decentralized move */
    bool present;
    const char *node, *pod, *migration_uid, *domain_name, *domain_namespace, *sync_address,
        *persistent_state_claim, *selinux_context, *vmi_uid;
    /* source only */
    struct api_map node_selectors;
    /* target only */
    const char *node_address, *attachment_pod_uid, *node_topology;
    const struct api_port *ports;
    size_t n_ports;
    bool domain_detected;
    int64_t domain_ready_ms;
    struct api_ints cpu_set;
};

struct api_migration_state { /* VMI and migration status.migrationState */
    bool present;
    const char *uid, *source_node, *source_pod, *target_node, *target_pod, *target_address;
    const struct api_port *ports;
    size_t n_ports;
    bool target_domain_detected, completed, failed, abort_requested;
    const char *abort_status, *failure_reason, *mode;
    int64_t start_ms, end_ms, target_domain_ready_ms;
    const char *policy_name, *target_attachment_pod_uid, *source_persistent_state_claim,
        *target_persistent_state_claim, *target_node_topology, *network_type;
    struct api_ints target_cpu_set;
    int64_t target_memory_overhead_bytes;
    struct api_migration_end source, target;
    struct api_migration_config config;
};

/* ---- machines ---------------------------------------------------------------------------------
 */

enum api_disk_kind { API_DISK, API_DISK_CDROM, API_DISK_LUN };
struct api_disk {
    const char *name, *bus, *cache, *io, *serial, *error_policy;
    enum api_disk_kind kind; /* a disk when it says nothing */
    bool readonly, has_readonly, shareable, dedicated_io_thread;
    int64_t boot_order;
    /* what `kind`, `bus` and `readonly` are made from */
    bool is_cdrom, is_lun, disk_readonly, cdrom_readonly, lun_readonly, has_disk_readonly,
        has_cdrom_readonly, has_lun_readonly;
    const char *disk_bus, *cdrom_bus, *lun_bus;
};

struct api_interface {
    const char *name, *model, *mac, *pci_address, *state, *binding; /* binding: of a plugin */
    bool masquerade, bridge, sriov, passt, slirp, macvtap;
    int64_t boot_order, acpi_index;
};

struct api_vmi_network {
    const char *name, *multus; /* multus: "[namespace/]name", or NULL */
    bool pod, multus_default;
};

enum api_volume_source {
    API_VOLUME_OTHER, /* one that Ferry knows nothing about */
    API_VOLUME_CLAIM,
    API_VOLUME_DATA_VOLUME,
    API_VOLUME_HOST_DISK,
    API_VOLUME_EMPTY_DISK,
    API_VOLUME_EPHEMERAL,
    API_VOLUME_CONTAINER_DISK,
    API_VOLUME_CLOUD_INIT,
    API_VOLUME_CONFIG_MAP,
    API_VOLUME_SECRET,
    API_VOLUME_SERVICE_ACCOUNT,
    API_VOLUME_DOWNWARD_API,
    API_VOLUME_SYSPREP,
    API_VOLUME_MEMORY_DUMP,
};
struct api_vmi_volume {
    const char *name;
    enum api_volume_source source;
    /* the claim of persistentVolumeClaim, ephemeral and memoryDump; a data volume's is its name */
    const char *claim;
    const char *image, *path, *host_disk_type; /* containerDisk; hostDisk */
    bool no_cloud;                             /* cloudInitNoCloud; its Secrets, or NULL: */
    const char *user_secret, *network_secret;
    int64_t capacity_bytes;    /* hostDisk, emptyDisk */
    bool shared, hotpluggable; /* hostDisk; claim and data volume */
};

struct api_device { /* hostDevices, gpus */
    const char *name, *device_name;
    bool virtual_display;
};

struct api_filesystem {
    const char *name;
    bool virtiofs;
};

struct api_cpu_feature {
    const char *name, *policy;
};

struct api_machine { /* spec of a VMI, and of a VM's template */
    /* cpu */
    int64_t sockets, cores, threads, max_sockets; /* 0 when absent */
    const char *cpu_model;
    bool dedicated_cpus, isolate_emulator, realtime, numa_passthrough;
    const struct api_cpu_feature *cpu_features;
    size_t n_cpu_features;
    int64_t cpu_request_milli, cpu_limit_milli;
    /* memory */
    int64_t memory_guest_bytes, memory_max_guest_bytes, memory_request_bytes, memory_limit_bytes;
    const char *hugepages; /* page size, "2Mi" */
    /* machine */
    const char *machine_type, *firmware_uuid;
    bool efi, efi_persistent, secure_boot, tpm, tpm_persistent;
    bool hyperv, hyperv_passthrough, hyperv_reenlightenment;
    bool sev, sev_snp, tdx, secure_execution; /* launchSecurity; secure execution: it is empty */
    bool has_launch_security;
    const yyjson_val *kernel_boot;
    /* devices */
    const struct api_disk *disks;
    const struct api_interface *interfaces;
    const struct api_device *host_devices, *gpus;
    const struct api_filesystem *filesystems;
    size_t n_disks, n_interfaces, n_host_devices, n_gpus, n_filesystems;
    /* beside the domain */
    const struct api_vmi_network *networks;
    const struct api_vmi_volume *volumes, *utility_volumes;
    size_t n_networks, n_volumes, n_utility_volumes;
    struct api_map node_selector;
    struct api_placement placement;
    const char *eviction_strategy, *start_strategy, *hostname, *subdomain;
    int64_t grace_s; /* terminationGracePeriodSeconds, 30 when absent */
};

struct api_claim_info { /* PersistentVolumeClaimInfo */
    bool present;
    const char *claim, *volume_mode, *filesystem_overhead;
    struct api_strings access_modes;
    int64_t capacity_bytes, request_bytes;
    bool preallocated;
};

struct api_migrated_volume {
    const char *volume;
    struct api_claim_info source, destination;
};

struct api_volume_status {
    const char *name, *target, *phase, *reason, *message, *attach_pod, *attach_pod_uid;
    bool hotplug;
    int64_t size_bytes;
    struct api_claim_info claim;
};

struct api_interface_status {
    const char *name, *ip, *mac, *link_state, *info_source;
};

struct api_vmi { /* VirtualMachineInstance */
    struct api_meta meta;
    /* spec */
    struct api_machine machine;
    const yyjson_val *spec; /* raw; the launcher's domain XML reads it */
    int64_t memory_bytes;   /* guest memory: domain.memory.guest, else what is requested */
    int64_t vcpus;          /* sockets*cores*threads, 1 when absent */
    struct api_map node_selector;
    const char *eviction_strategy;
    int64_t grace_s;
    /* status */
    const char *phase, *node_name, *reason, *migration_method, *migration_transport;
    const char *evacuation_node, *launcher_image, *selinux_context, *machine_type, *qos_class;
    struct api_map active_pods; /* pod UID -> node */
    int64_t runtime_user;
    bool has_runtime_user;
    int64_t current_sockets, current_cores, current_threads; /* currentCPUTopology */
    int64_t memory_at_boot_bytes, memory_current_bytes, memory_requested_bytes,
        memory_overhead_bytes;
    const struct api_migrated_volume *migrated_volumes;
    const struct api_volume_status *volumes;
    const struct api_interface_status *interfaces;
    size_t n_migrated_volumes, n_volumes, n_interfaces;
    bool backup_in_progress; /* changedBlockTracking.backupStatus is there */
    int64_t tsc_frequency;   /* topologyHints.tscFrequency */
    struct api_conditions conditions;
    struct api_migration_state migration;
    const yyjson_val *status; /* raw */
};

struct api_vm { /* VirtualMachine */
    struct api_meta meta;
    const char *run_strategy; /* Always, Halted, Manual, RerunOnFailure, Once; `running` as one */
    bool running, has_running;
    const char *update_volumes_strategy; /* Migration, Replacement */
    struct api_map template_labels, template_annotations;
    struct api_machine machine;  /* spec.template.spec */
    const yyjson_val *template_; /* raw */
    const yyjson_val *data_volume_templates;
    /* status */
    bool created, ready;
    const char *printable_status;
    const struct api_migrated_volume *migrated_volumes; /* of volumeUpdateState */
    size_t n_migrated_volumes;
    struct api_conditions conditions;
};

struct api_phase_time {
    const char *phase;
    int64_t at_ms;
};

struct api_migration { /* VirtualMachineInstanceMigration */
    struct api_meta meta;
    const char *vmi_name, *priority;
    struct api_map added_node_selector;
    bool sends, receives; /* the halves of a decentralized move */
    const char *send_id, *send_url, *receive_id;
    /* status */
    const char *phase; /* "" when unset, never NULL */
    struct api_conditions conditions;
    const struct api_phase_time *phase_times;
    size_t n_phase_times;
    struct api_strings sync_addresses;
    const char *source_pod; /* status.migrationState.sourcePod */
    struct api_migration_state state;
};

struct api_policy { /* MigrationPolicy */
    struct api_meta meta;
    struct api_map namespace_selector, vmi_selector;
    struct api_migration_config config; /* what it overrides */
};

struct api_kubevirt { /* KubeVirt: the site's configuration */
    struct api_meta meta;
    struct api_migration_config migrations; /* spec.configuration.migrations */
    const char *eviction_strategy;
    bool use_emulation, has_use_emulation;
    struct api_strings feature_gates;
    struct api_strings update_methods; /* LiveMigrate, Evict */
    int64_t batch_eviction_size;
    bool has_batch_eviction_size;
    const char *batch_eviction_interval; /* "1m0s" */
    /* status */
    const char *phase;
    struct api_strings sync_addresses;
    struct api_conditions conditions;
};
