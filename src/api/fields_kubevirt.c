/* The tables of KubeVirt's kinds. */
#include <string.h>

#include "api/fields.h"
#include "api/json.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"

/* clang-format off */
/* ---- how moves are made ---------------------------------------------------------------------- */

#define STALL_INT(p, m) \
    ROW_OPTIONAL(ROW_INT(p, api_stall_detector, m, 0), p, api_stall_detector, has_##m)
#define STALL_MILLI(p, m) \
    ROW_OPTIONAL(ROW_QUANTITY(p, api_stall_detector, m, 1000), p, api_stall_detector, has_##m)
static struct api_table stall_detector_table = {.rows = (const struct api_field[]){
    STALL_INT("stallMargin", stall_margin_percent),
    STALL_MILLI("ewmaAlpha", ewma_alpha_milli),
    STALL_INT("stallProgressTimeout", stall_progress_timeout_s),
    STALL_INT("switchoverTimeout", switchover_timeout_s),
    STALL_MILLI("precopyPossibleFactor", precopy_possible_factor_milli),
    STALL_MILLI("patienceWindowDecayFactor", patience_decay_factor_milli),
    ROW_OPTIONAL(ROW_BOOL("searchLocalMinima", api_stall_detector, search_local_minima),
               "searchLocalMinima", api_stall_detector, has_search_local_minima),
    STALL_MILLI("completionTimeoutFactor", completion_timeout_factor_milli),
    ROW_END,
}};

#define TUNING_INT(p, m) \
    ROW_OPTIONAL(ROW_INT(p, api_downtime_tuning, m, 0), p, api_downtime_tuning, has_##m)
static struct api_table downtime_tuning_table = {.rows = (const struct api_field[]){
    TUNING_INT("initialMs", initial_ms),
    TUNING_INT("steps", steps),
    TUNING_INT("startAfterIteration", start_after_iteration),
    TUNING_INT("cooldownSeconds", cooldown_s),
    ROW_END,
}};

static struct api_table experimental_table = {.rows = (const struct api_field[]){
    ROW_PART("stallDetector", api_migration_experimental, stall_detector, &stall_detector_table),
    ROW_PART("downtimeTuning", api_migration_experimental, downtime_tuning, &downtime_tuning_table),
    ROW_STR("compression", api_migration_experimental, compression),
    ROW_END,
}};

#define CONFIG_BOOL(p, m) \
    ROW_OPTIONAL(ROW_BOOL(p, api_migration_config, m), p, api_migration_config, has_##m)
#define CONFIG_INT(p, m, has) \
    ROW_OPTIONAL(ROW_INT(p, api_migration_config, m, 0), p, api_migration_config, has)
static struct api_table config_table = {.rows = (const struct api_field[]){
    CONFIG_BOOL("allowAutoConverge", allow_auto_converge),
    CONFIG_BOOL("allowPostCopy", allow_post_copy),
    CONFIG_BOOL("allowWorkloadDisruption", allow_workload_disruption),
    CONFIG_BOOL("disableTLS", disable_tls),
    CONFIG_BOOL("unsafeMigrationOverride", unsafe_migration_override),
    CONFIG_BOOL("matchSELinuxLevelOnMigration", match_selinux_level),
    ROW_OPTIONAL(ROW_QUANTITY("bandwidthPerMigration", api_migration_config, bandwidth_bytes_per_s, 1),
               "bandwidthPerMigration", api_migration_config, has_bandwidth),
    CONFIG_INT("completionTimeoutPerGiB", completion_timeout_per_gib_s,
               has_completion_timeout_per_gib),
    CONFIG_INT("progressTimeout", progress_timeout_s, has_progress_timeout),
    CONFIG_INT("maxDowntimeMs", max_downtime_ms, has_max_downtime),
    CONFIG_INT("utilityVolumesTimeout", utility_volumes_timeout_s, has_utility_volumes_timeout),
    CONFIG_INT("parallelMigrationsPerCluster", parallel_per_cluster, has_parallel_per_cluster),
    CONFIG_INT("parallelOutboundMigrationsPerNode", parallel_outbound_per_node,
               has_parallel_outbound_per_node),
    ROW_STR("nodeDrainTaintKey", api_migration_config, node_drain_taint_key),
    ROW_STR("network", api_migration_config, network),
    ROW_STRUCT("experimental", api_migration_config, experimental, &experimental_table),
    ROW_END,
}};
#define CONFIG(p, s, m) ROW_PART(p, s, m, &config_table), ROW_RAW(p, s, m.raw)

static struct api_table end_table = {.rows = (const struct api_field[]){
    ROW_STR("node", api_migration_end, node),
    ROW_STR("pod", api_migration_end, pod),
    ROW_STR("migrationUID", api_migration_end, migration_uid),
    ROW_STR("domainName", api_migration_end, domain_name),
    ROW_STR("domainNamespace", api_migration_end, domain_namespace),
    ROW_STR("syncAddress", api_migration_end, sync_address),
    ROW_STR("persistentStatePVCName", api_migration_end, persistent_state_claim),
    ROW_STR("selinuxContext", api_migration_end, selinux_context),
    ROW_STR("virtualMachineInstanceUID", api_migration_end, vmi_uid),
    ROW_MAP("nodeSelectors", api_migration_end, node_selectors),
    ROW_STR("nodeAddress", api_migration_end, node_address),
    ROW_STR("attachmentPodUID", api_migration_end, attachment_pod_uid),
    ROW_STR("nodeTopology", api_migration_end, node_topology),
    ROW_PORTS("directMigrationNodePorts", api_migration_end, ports, n_ports),
    ROW_BOOL("domainDetected", api_migration_end, domain_detected),
    ROW_TIME("domainReadyTimestamp", api_migration_end, domain_ready_ms),
    ROW_INTS("cpuSet", api_migration_end, cpu_set),
    ROW_END,
}};

static struct api_table state_table = {.rows = (const struct api_field[]){
    ROW_STR("migrationUid", api_migration_state, uid),
    ROW_STR("sourceNode", api_migration_state, source_node),
    ROW_STR("sourcePod", api_migration_state, source_pod),
    ROW_STR("targetNode", api_migration_state, target_node),
    ROW_STR("targetPod", api_migration_state, target_pod),
    ROW_STR("targetAttachmentPodUID", api_migration_state, target_attachment_pod_uid),
    ROW_STR("migrationPolicyName", api_migration_state, policy_name),
    CONFIG("migrationConfiguration", api_migration_state, config),
    ROW_STR("sourcePersistentStatePVCName", api_migration_state, source_persistent_state_claim),
    ROW_STR("targetPersistentStatePVCName", api_migration_state, target_persistent_state_claim),
    ROW_QUANTITY("targetMemoryOverhead", api_migration_state, target_memory_overhead_bytes, 1),
    ROW_STR("targetNodeAddress", api_migration_state, target_address),
    ROW_PORTS("targetDirectMigrationNodePorts", api_migration_state, ports, n_ports),
    ROW_BOOL("targetNodeDomainDetected", api_migration_state, target_domain_detected),
    ROW_TIME("targetNodeDomainReadyTimestamp", api_migration_state, target_domain_ready_ms),
    ROW_INTS("targetCPUSet", api_migration_state, target_cpu_set),
    ROW_STR("targetNodeTopology", api_migration_state, target_node_topology),
    ROW_TIME("startTimestamp", api_migration_state, start_ms),
    ROW_TIME("endTimestamp", api_migration_state, end_ms),
    ROW_BOOL("completed", api_migration_state, completed),
    ROW_BOOL("failed", api_migration_state, failed),
    ROW_STR("failureReason", api_migration_state, failure_reason),
    ROW_BOOL("abortRequested", api_migration_state, abort_requested),
    ROW_STR("abortStatus", api_migration_state, abort_status),
    ROW_STR("mode", api_migration_state, mode),
    ROW_PART("sourceState", api_migration_state, source, &end_table),
    ROW_PART("targetState", api_migration_state, target, &end_table),
    ROW_STR("migrationNetworkType", api_migration_state, network_type),
    ROW_END,
}};

/* ---- machines -------------------------------------------------------------------------------- */
/* clang-format on */

static int finish_disk(const yyjson_val *v, void *out, struct ferry_error *err)
{
    struct api_disk *d = out;

    (void)v;
    (void)err;
    d->kind = d->is_cdrom ? API_DISK_CDROM : d->is_lun ? API_DISK_LUN : API_DISK;
    d->bus = d->is_cdrom ? d->cdrom_bus : d->is_lun ? d->lun_bus : d->disk_bus;
    d->readonly = d->is_cdrom ? d->cdrom_readonly : d->is_lun ? d->lun_readonly : d->disk_readonly;
    d->has_readonly = d->is_cdrom ? d->has_cdrom_readonly
                      : d->is_lun ? d->has_lun_readonly
                                  : d->has_disk_readonly;
    return 0;
}

static int finish_machine(const yyjson_val *v, void *out, struct ferry_error *err)
{
    struct api_machine *m = out;
    const struct {
        const char *name;
        int64_t value;
    } parts[] = {{"sockets", m->sockets},
                 {"cores", m->cores},
                 {"threads", m->threads},
                 {"maxSockets", m->max_sockets}};

    (void)v;
    for (size_t i = 0; i < FERRY_COUNT(parts); i++) {
        if (parts[i].value < 0 || parts[i].value > 4096) {
            ferry_fail(err, FERRY_INVALID, "must be a whole number from 1 to 4096");
            ferry_wrap_about(err, "domain.cpu.%s", parts[i].name);
            return -FERRY_INVALID;
        }
    }
    m->secure_execution = m->has_launch_security && !m->sev && !m->sev_snp && !m->tdx;
    return 0;
}

/* clang-format off */
static struct api_table disk_table = {.finish = finish_disk, .rows = (const struct api_field[]){
    ROW_STR("name", api_disk, name),
    ROW_PRESENT("cdrom", api_disk, is_cdrom),
    ROW_PRESENT("lun", api_disk, is_lun),
    ROW_STR("disk.bus", api_disk, disk_bus),
    ROW_STR("cdrom.bus", api_disk, cdrom_bus),
    ROW_STR("lun.bus", api_disk, lun_bus),
    ROW_OPTIONAL(ROW_BOOL("disk.readonly", api_disk, disk_readonly), "disk.readonly", api_disk,
               has_disk_readonly),
    ROW_OPTIONAL(ROW_BOOL("cdrom.readonly", api_disk, cdrom_readonly), "cdrom.readonly", api_disk,
               has_cdrom_readonly),
    ROW_OPTIONAL(ROW_BOOL("lun.readonly", api_disk, lun_readonly), "lun.readonly", api_disk,
               has_lun_readonly),
    ROW_STR("cache", api_disk, cache),
    ROW_STR("io", api_disk, io),
    ROW_STR("serial", api_disk, serial),
    ROW_STR("errorPolicy", api_disk, error_policy),
    ROW_BOOL("shareable", api_disk, shareable),
    ROW_BOOL("dedicatedIOThread", api_disk, dedicated_io_thread),
    ROW_INT("bootOrder", api_disk, boot_order, 0),
    ROW_END,
}};

static struct api_table interface_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_interface, name),
    ROW_STR("model", api_interface, model),
    ROW_STR("macAddress", api_interface, mac),
    ROW_STR("pciAddress", api_interface, pci_address),
    ROW_STR("state", api_interface, state),
    ROW_STR("binding.name", api_interface, binding),
    ROW_PRESENT("masquerade", api_interface, masquerade),
    ROW_PRESENT("bridge", api_interface, bridge),
    ROW_PRESENT("sriov", api_interface, sriov),
    ROW_PRESENT("passt", api_interface, passt),
    ROW_PRESENT("passtBinding", api_interface, passt),
    ROW_PRESENT("slirp", api_interface, slirp),
    ROW_PRESENT("macvtap", api_interface, macvtap),
    ROW_INT("bootOrder", api_interface, boot_order, 0),
    ROW_INT("acpiIndex", api_interface, acpi_index, 0),
    ROW_END,
}};

static struct api_table vmi_network_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_vmi_network, name),
    ROW_PRESENT("pod", api_vmi_network, pod),
    ROW_STR("multus.networkName", api_vmi_network, multus),
    ROW_BOOL("multus.default", api_vmi_network, multus_default),
    ROW_END,
}};

#define SOURCE(p, value) ROW_MARK(p, api_vmi_volume, source, value)
static struct api_table vmi_volume_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_vmi_volume, name),
    SOURCE("persistentVolumeClaim", API_VOLUME_CLAIM),
    ROW_STR("persistentVolumeClaim.claimName", api_vmi_volume, claim),
    ROW_BOOL("persistentVolumeClaim.hotpluggable", api_vmi_volume, hotpluggable),
    SOURCE("dataVolume", API_VOLUME_DATA_VOLUME),
    ROW_STR("dataVolume.name", api_vmi_volume, claim),
    ROW_BOOL("dataVolume.hotpluggable", api_vmi_volume, hotpluggable),
    SOURCE("hostDisk", API_VOLUME_HOST_DISK),
    ROW_STR("hostDisk.path", api_vmi_volume, path),
    ROW_STR("hostDisk.type", api_vmi_volume, host_disk_type),
    ROW_BOOL("hostDisk.shared", api_vmi_volume, shared),
    ROW_QUANTITY("hostDisk.capacity", api_vmi_volume, capacity_bytes, 1),
    SOURCE("emptyDisk", API_VOLUME_EMPTY_DISK),
    ROW_QUANTITY("emptyDisk.capacity", api_vmi_volume, capacity_bytes, 1),
    SOURCE("ephemeral", API_VOLUME_EPHEMERAL),
    ROW_STR("ephemeral.persistentVolumeClaim.claimName", api_vmi_volume, claim),
    SOURCE("containerDisk", API_VOLUME_CONTAINER_DISK),
    ROW_STR("containerDisk.image", api_vmi_volume, image),
    SOURCE("cloudInitNoCloud", API_VOLUME_CLOUD_INIT),
    ROW_PRESENT("cloudInitNoCloud", api_vmi_volume, no_cloud),
    ROW_STR("cloudInitNoCloud.secretRef.name", api_vmi_volume, user_secret),
    ROW_STR("cloudInitNoCloud.networkDataSecretRef.name", api_vmi_volume, network_secret),
    SOURCE("cloudInitConfigDrive", API_VOLUME_CLOUD_INIT),
    SOURCE("configMap", API_VOLUME_CONFIG_MAP),
    SOURCE("secret", API_VOLUME_SECRET),
    SOURCE("serviceAccount", API_VOLUME_SERVICE_ACCOUNT),
    SOURCE("downwardAPI", API_VOLUME_DOWNWARD_API),
    SOURCE("downwardMetrics", API_VOLUME_DOWNWARD_API),
    SOURCE("sysprep", API_VOLUME_SYSPREP),
    SOURCE("memoryDump", API_VOLUME_MEMORY_DUMP),
    ROW_STR("memoryDump.claimName", api_vmi_volume, claim),
    ROW_END,
}};

static struct api_table utility_volume_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_vmi_volume, name),
    ROW_STR("claimName", api_vmi_volume, claim),
    ROW_STR("persistentVolumeClaim.claimName", api_vmi_volume, claim),
    ROW_END,
}};

static struct api_table device_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_device, name),
    ROW_STR("deviceName", api_device, device_name),
    ROW_PRESENT("virtualGPUOptions.display", api_device, virtual_display),
    ROW_END,
}};

static struct api_table filesystem_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_filesystem, name),
    ROW_PRESENT("virtiofs", api_filesystem, virtiofs),
    ROW_END,
}};

static struct api_table cpu_feature_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_cpu_feature, name),
    ROW_STR("policy", api_cpu_feature, policy),
    ROW_END,
}};

static struct api_table machine_table = {.finish = finish_machine, .rows = (const struct api_field[]){
    ROW_INT("domain.cpu.sockets", api_machine, sockets, 0),
    ROW_INT("domain.cpu.cores", api_machine, cores, 0),
    ROW_INT("domain.cpu.threads", api_machine, threads, 0),
    ROW_INT("domain.cpu.maxSockets", api_machine, max_sockets, 0),
    ROW_STR("domain.cpu.model", api_machine, cpu_model),
    ROW_BOOL("domain.cpu.dedicatedCpuPlacement", api_machine, dedicated_cpus),
    ROW_BOOL("domain.cpu.isolateEmulatorThread", api_machine, isolate_emulator),
    ROW_PRESENT("domain.cpu.realtime", api_machine, realtime),
    ROW_PRESENT("domain.cpu.numa.guestMappingPassthrough", api_machine, numa_passthrough),
    ROW_LIST("domain.cpu.features", api_machine, cpu_features, n_cpu_features, &cpu_feature_table,
           api_cpu_feature),
    ROW_QUANTITY("domain.resources.requests.cpu", api_machine, cpu_request_milli, 1000),
    ROW_QUANTITY("domain.resources.limits.cpu", api_machine, cpu_limit_milli, 1000),
    ROW_QUANTITY("domain.resources.requests.memory", api_machine, memory_request_bytes, 1),
    ROW_QUANTITY("domain.resources.limits.memory", api_machine, memory_limit_bytes, 1),
    ROW_QUANTITY("domain.memory.guest", api_machine, memory_guest_bytes, 1),
    ROW_QUANTITY("domain.memory.maxGuest", api_machine, memory_max_guest_bytes, 1),
    ROW_STR("domain.memory.hugepages.pageSize", api_machine, hugepages),
    ROW_STR("domain.machine.type", api_machine, machine_type),
    ROW_STR("domain.firmware.uuid", api_machine, firmware_uuid),
    ROW_PRESENT("domain.firmware.bootloader.efi", api_machine, efi),
    ROW_BOOL("domain.firmware.bootloader.efi.persistent", api_machine, efi_persistent),
    ROW_BOOL("domain.firmware.bootloader.efi.secureBoot", api_machine, secure_boot),
    ROW_RAW("domain.firmware.kernelBoot", api_machine, kernel_boot),
    ROW_PRESENT("domain.devices.tpm", api_machine, tpm),
    ROW_BOOL("domain.devices.tpm.persistent", api_machine, tpm_persistent),
    ROW_PRESENT("domain.features.hyperv", api_machine, hyperv),
    ROW_PRESENT("domain.features.hyperv.reenlightenment", api_machine, hyperv_reenlightenment),
    ROW_PRESENT("domain.features.hypervPassthrough", api_machine, hyperv_passthrough),
    ROW_PRESENT("domain.launchSecurity", api_machine, has_launch_security),
    ROW_PRESENT("domain.launchSecurity.sev", api_machine, sev),
    ROW_PRESENT("domain.launchSecurity.snp", api_machine, sev_snp),
    ROW_PRESENT("domain.launchSecurity.tdx", api_machine, tdx),
    ROW_LIST("domain.devices.disks", api_machine, disks, n_disks, &disk_table, api_disk),
    ROW_LIST("domain.devices.interfaces", api_machine, interfaces, n_interfaces, &interface_table,
           api_interface),
    ROW_LIST("domain.devices.hostDevices", api_machine, host_devices, n_host_devices, &device_table,
           api_device),
    ROW_LIST("domain.devices.gpus", api_machine, gpus, n_gpus, &device_table, api_device),
    ROW_LIST("domain.devices.filesystems", api_machine, filesystems, n_filesystems,
           &filesystem_table, api_filesystem),
    ROW_LIST("networks", api_machine, networks, n_networks, &vmi_network_table, api_vmi_network),
    ROW_LIST("volumes", api_machine, volumes, n_volumes, &vmi_volume_table, api_vmi_volume),
    ROW_LIST("utilityVolumes", api_machine, utility_volumes, n_utility_volumes,
           &utility_volume_table, api_vmi_volume),
    ROW_MAP("nodeSelector", api_machine, node_selector),
    ROW_PLACEMENT("", api_machine, placement),
    ROW_STR("evictionStrategy", api_machine, eviction_strategy),
    ROW_STR("startStrategy", api_machine, start_strategy),
    ROW_STR("hostname", api_machine, hostname),
    ROW_STR("subdomain", api_machine, subdomain),
    ROW_INT("terminationGracePeriodSeconds", api_machine, grace_s, 30),
    ROW_END,
}};

static struct api_table claim_info_table = {.rows = (const struct api_field[]){
    ROW_STR("claimName", api_claim_info, claim),
    ROW_STR("volumeMode", api_claim_info, volume_mode),
    ROW_STR("filesystemOverhead", api_claim_info, filesystem_overhead),
    ROW_STRINGS("accessModes", api_claim_info, access_modes),
    ROW_QUANTITY("capacity.storage", api_claim_info, capacity_bytes, 1),
    ROW_QUANTITY("requests.storage", api_claim_info, request_bytes, 1),
    ROW_BOOL("preallocated", api_claim_info, preallocated),
    ROW_END,
}};

static struct api_table migrated_volume_table = {.rows = (const struct api_field[]){
    ROW_STR("volumeName", api_migrated_volume, volume),
    ROW_PART("sourcePVCInfo", api_migrated_volume, source, &claim_info_table),
    ROW_PART("destinationPVCInfo", api_migrated_volume, destination, &claim_info_table),
    ROW_END,
}};

static struct api_table volume_status_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_volume_status, name),
    ROW_STR("target", api_volume_status, target),
    ROW_STR("phase", api_volume_status, phase),
    ROW_STR("reason", api_volume_status, reason),
    ROW_STR("message", api_volume_status, message),
    ROW_PRESENT("hotplugVolume", api_volume_status, hotplug),
    ROW_STR("hotplugVolume.attachPodName", api_volume_status, attach_pod),
    ROW_STR("hotplugVolume.attachPodUID", api_volume_status, attach_pod_uid),
    ROW_INT("size", api_volume_status, size_bytes, 0),
    ROW_PART("persistentVolumeClaimInfo", api_volume_status, claim, &claim_info_table),
    ROW_END,
}};

static struct api_table interface_status_table = {.rows = (const struct api_field[]){
    ROW_STR("name", api_interface_status, name),
    ROW_STR("ipAddress", api_interface_status, ip),
    ROW_STR("mac", api_interface_status, mac),
    ROW_STR("linkState", api_interface_status, link_state),
    ROW_STR("infoSource", api_interface_status, info_source),
    ROW_END,
}};
/* clang-format on */

/* ---- kinds ------------------------------------------------------------------------------------
 */

static int finish_vmi(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_vmi *vmi = out;
    const struct api_machine *m = &vmi->machine;

    (void)root;
    (void)err;
    vmi->vcpus =
        (m->sockets ? m->sockets : 1) * (m->cores ? m->cores : 1) * (m->threads ? m->threads : 1);
    vmi->memory_bytes = m->memory_guest_bytes ? m->memory_guest_bytes : m->memory_request_bytes;
    vmi->node_selector = m->node_selector;
    vmi->eviction_strategy = m->eviction_strategy;
    vmi->grace_s = vmi->spec ? m->grace_s : 30;
    return 0;
}

static int finish_vm(const yyjson_val *root, void *out, struct ferry_error *err)
{
    struct api_vm *vm = out;

    (void)root;
    (void)err;
    if (!vm->run_strategy) {
        vm->run_strategy = vm->running ? "Always" : "Halted";
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

/* clang-format off */
struct api_table api_vmi_table = {.finish = finish_vmi, .rows = (const struct api_field[]){
    ROW_RAW("spec", api_vmi, spec),
    ROW_STRUCT("spec", api_vmi, machine, &machine_table),
    ROW_RAW("status", api_vmi, status),
    ROW_STR("status.phase", api_vmi, phase),
    ROW_STR("status.nodeName", api_vmi, node_name),
    ROW_STR("status.reason", api_vmi, reason),
    ROW_STR("status.migrationMethod", api_vmi, migration_method),
    ROW_STR("status.migrationTransport", api_vmi, migration_transport),
    ROW_STR("status.evacuationNodeName", api_vmi, evacuation_node),
    ROW_STR("status.launcherContainerImageVersion", api_vmi, launcher_image),
    ROW_STR("status.selinuxContext", api_vmi, selinux_context),
    ROW_STR("status.machine.type", api_vmi, machine_type),
    ROW_STR("status.qosClass", api_vmi, qos_class),
    ROW_MAP("status.activePods", api_vmi, active_pods),
    ROW_OPTIONAL(ROW_INT("status.runtimeUser", api_vmi, runtime_user, 0), "status.runtimeUser",
               api_vmi, has_runtime_user),
    ROW_INT("status.currentCPUTopology.sockets", api_vmi, current_sockets, 0),
    ROW_INT("status.currentCPUTopology.cores", api_vmi, current_cores, 0),
    ROW_INT("status.currentCPUTopology.threads", api_vmi, current_threads, 0),
    ROW_QUANTITY("status.memory.guestAtBoot", api_vmi, memory_at_boot_bytes, 1),
    ROW_QUANTITY("status.memory.guestCurrent", api_vmi, memory_current_bytes, 1),
    ROW_QUANTITY("status.memory.guestRequested", api_vmi, memory_requested_bytes, 1),
    ROW_QUANTITY("status.memory.memoryOverhead", api_vmi, memory_overhead_bytes, 1),
    ROW_LIST("status.migratedVolumes", api_vmi, migrated_volumes, n_migrated_volumes,
           &migrated_volume_table, api_migrated_volume),
    ROW_LIST("status.volumeStatus", api_vmi, volumes, n_volumes, &volume_status_table,
           api_volume_status),
    ROW_LIST("status.interfaces", api_vmi, interfaces, n_interfaces, &interface_status_table,
           api_interface_status),
    ROW_PRESENT("status.changedBlockTracking.backupStatus", api_vmi, backup_in_progress),
    ROW_INT("status.topologyHints.tscFrequency", api_vmi, tsc_frequency, 0),
    ROW_CONDITIONS(api_vmi),
    ROW_PART("status.migrationState", api_vmi, migration, &state_table),
    ROW_END,
}};

struct api_table api_vm_table = {.finish = finish_vm, .rows = (const struct api_field[]){
    ROW_STR("spec.runStrategy", api_vm, run_strategy),
    ROW_OPTIONAL(ROW_BOOL("spec.running", api_vm, running), "spec.running", api_vm, has_running),
    ROW_STR("spec.updateVolumesStrategy", api_vm, update_volumes_strategy),
    ROW_RAW("spec.template", api_vm, template_),
    ROW_MAP("spec.template.metadata.labels", api_vm, template_labels),
    ROW_MAP("spec.template.metadata.annotations", api_vm, template_annotations),
    ROW_STRUCT("spec.template.spec", api_vm, machine, &machine_table),
    ROW_RAW("spec.dataVolumeTemplates", api_vm, data_volume_templates),
    ROW_BOOL("status.created", api_vm, created),
    ROW_BOOL("status.ready", api_vm, ready),
    ROW_STR("status.printableStatus", api_vm, printable_status),
    ROW_LIST("status.volumeUpdateState.volumeMigrationState.migratedVolumes", api_vm,
           migrated_volumes, n_migrated_volumes, &migrated_volume_table, api_migrated_volume),
    ROW_CONDITIONS(api_vm),
    ROW_END,
}};

static struct api_table phase_time_table = {.rows = (const struct api_field[]){
    ROW_STR("phase", api_phase_time, phase),
    ROW_TIME("phaseTransitionTimestamp", api_phase_time, at_ms),
    ROW_END,
}};

struct api_table api_migration_table = {.finish = finish_migration, .rows = (const struct api_field[]){
    ROW_STR("spec.vmiName", api_migration, vmi_name),
    ROW_STR("spec.priority", api_migration, priority),
    ROW_MAP("spec.addedNodeSelector", api_migration, added_node_selector),
    ROW_PRESENT("spec.sendTo", api_migration, sends),
    ROW_STR("spec.sendTo.migrationID", api_migration, send_id),
    ROW_STR("spec.sendTo.connectURL", api_migration, send_url),
    ROW_PRESENT("spec.receive", api_migration, receives),
    ROW_STR("spec.receive.migrationID", api_migration, receive_id),
    ROW_STR("status.phase", api_migration, phase),
    ROW_LIST("status.phaseTransitionTimestamps", api_migration, phase_times, n_phase_times,
           &phase_time_table, api_phase_time),
    ROW_STRINGS("status.synchronizationAddresses", api_migration, sync_addresses),
    ROW_CONDITIONS(api_migration),
    ROW_PART("status.migrationState", api_migration, state, &state_table),
    ROW_END,
}};

struct api_table api_policy_table = {.rows = (const struct api_field[]){
    ROW_MAP("spec.selectors.namespaceSelector", api_policy, namespace_selector),
    ROW_MAP("spec.selectors.virtualMachineInstanceSelector", api_policy, vmi_selector),
    CONFIG("spec", api_policy, config),
    ROW_END,
}};

struct api_table api_kubevirt_table = {.rows = (const struct api_field[]){
    CONFIG("spec.configuration.migrations", api_kubevirt, migrations),
    ROW_STR("spec.configuration.evictionStrategy", api_kubevirt, eviction_strategy),
    ROW_OPTIONAL(ROW_BOOL("spec.configuration.developerConfiguration.useEmulation", api_kubevirt,
                       use_emulation),
               "spec.configuration.developerConfiguration.useEmulation", api_kubevirt,
               has_use_emulation),
    ROW_STRINGS("spec.configuration.developerConfiguration.featureGates", api_kubevirt,
              feature_gates),
    ROW_STRINGS("spec.workloadUpdateStrategy.workloadUpdateMethods", api_kubevirt, update_methods),
    ROW_OPTIONAL(ROW_INT("spec.workloadUpdateStrategy.batchEvictionSize", api_kubevirt,
                      batch_eviction_size, 0),
               "spec.workloadUpdateStrategy.batchEvictionSize", api_kubevirt,
               has_batch_eviction_size),
    ROW_STR("spec.workloadUpdateStrategy.batchEvictionInterval", api_kubevirt,
           batch_eviction_interval),
    ROW_STR("status.phase", api_kubevirt, phase),
    ROW_STRINGS("status.synchronizationAddresses", api_kubevirt, sync_addresses),
    ROW_CONDITIONS(api_kubevirt),
    ROW_END,
}};
/* clang-format on */
