/* Keys that programs put on objects for each other: labels, annotations, finalizers, types of
 * conditions. Here and nowhere else (tools/check-contracts). Those of ferry.io are Ferry's own,
 * and documented; the others are KubeVirt's or Kubernetes'. Macros, because tables and longer keys
 * are made of them. What an annotation says is read and written by a file of its own beside this
 * one. */
#pragma once

#include <yyjson.h>

/* ---- labels ----------------------------------------------------------------------------------
 */

#define LABEL_APP "kubevirt.io"
#define LABEL_APP_LAUNCHER "virt-launcher" /* its value, and how names of its pods begin */
#define LABEL_CREATED_BY "kubevirt.io/created-by"
#define LABEL_NODE_NAME "kubevirt.io/nodeName"
#define LABEL_TARGET_NODE_NAME "kubevirt.io/migrationTargetNodeName"
#define LABEL_MIGRATION_JOB_UID "kubevirt.io/migrationJobUID"
#define LABEL_VMI_NAME "kubevirt.io/vmi-name"
#define LABEL_VM_NAME "vm.kubevirt.io/name"
#define LABEL_SCHEDULABLE "kubevirt.io/schedulable"
#define LABEL_CPU_MANAGER "kubevirt.io/cpumanager"
#define LABEL_REALTIME "kubevirt.io/realtime"
#define LABEL_SEV "kubevirt.io/sev"
#define LABEL_HOSTNAME "kubernetes.io/hostname"
#define LABEL_OS "kubernetes.io/os"
#define LABEL_ARCH "kubernetes.io/arch"
/* Of a ControllerRevision: what it keeps a copy of. */
#define LABEL_OBJECT_GENERATION "instancetype.kubevirt.io/object-generation"
#define LABEL_OBJECT_KIND "instancetype.kubevirt.io/object-kind"
#define LABEL_OBJECT_NAME "instancetype.kubevirt.io/object-name"
#define LABEL_OBJECT_UID "instancetype.kubevirt.io/object-uid"
#define LABEL_OBJECT_VERSION "instancetype.kubevirt.io/object-version"
#define LABEL_NAMESPACE_NAME "kubernetes.io/metadata.name"
#define LABEL_ADDRESS "ferry.io/address" /* of a Lease that claims an address */
/* Of a ClusterRole; the role that it adds to follows. */
#define LABEL_AGGREGATE "rbac.authorization.k8s.io/aggregate-to-"
#define LABEL_BOOTSTRAPPING "kubernetes.io/bootstrapping"

/* Of a node; a model, feature, vendor or machine type follows. */
#define LABEL_CPU_MODEL "cpu-model.node.kubevirt.io/"
#define LABEL_CPU_MIGRATION "cpu-model-migration.node.kubevirt.io/"
#define LABEL_CPU_FEATURE "cpu-feature.node.kubevirt.io/"
#define LABEL_CPU_VENDOR "cpu-vendor.node.kubevirt.io/"
#define LABEL_HOST_MODEL "host-model-cpu.node.kubevirt.io/"
#define LABEL_HOST_FEATURES "host-model-required-features.node.kubevirt.io/"
#define LABEL_MACHINE_TYPE "machine-type.node.kubevirt.io/"
#define LABEL_NODE_ROLE "node-role.kubernetes.io/"

/* ---- annotations -----------------------------------------------------------------------------
 */

#define ANNOTATION_ALLOW_POD_BRIDGE "kubevirt.io/allow-pod-bridge-network-live-migration"
#define ANNOTATION_DOMAIN "kubevirt.io/domain"
#define ANNOTATION_TRANSPORT_UNIX "kubevirt.io/migrationTransportUnix"
#define ANNOTATION_MIGRATION_JOB_NAME "kubevirt.io/migrationJobName"
#define ANNOTATION_MEMORY_OVERHEAD "kubevirt.io/memory-overhead-bytes"
#define ANNOTATION_EVICT_ONLY "descheduler.alpha.kubernetes.io/request-evict-only"
#define ANNOTATION_NETWORK_STATUS "k8s.v1.cni.cncf.io/network-status"
#define ANNOTATION_ABORT_UPDATES "kubevirt.io/testWorkloadUpdateMigrationAbortion"
#define ANNOTATION_EVICTION_SOURCE "kubevirt.io/eviction-source"
#define ANNOTATION_REQUESTED_BY "descheduler.alpha.kubernetes.io/requested-by"
#define ANNOTATION_EVICTION_IN_PROGRESS "descheduler.alpha.kubernetes.io/eviction-in-progress"
#define ANNOTATION_EVACUATION "kubevirt.io/evacuationMigration"
#define ANNOTATION_WORKLOAD_UPDATE "kubevirt.io/workloadUpdateMigration"
#define ANNOTATION_UNSCHEDULABLE_TIMEOUT "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
#define ANNOTATION_PENDING_TIMEOUT "kubevirt.io/migrationPendingPodTimeoutSeconds"
#define ANNOTATION_HEARTBEAT "kubevirt.io/heartbeat"
#define ANNOTATION_VM_GENERATION "kubevirt.io/vm-generation"
#define ANNOTATION_INSTANCETYPE "kubevirt.io/instancetype-name"
#define ANNOTATION_CLUSTER_INSTANCETYPE "kubevirt.io/cluster-instancetype-name"
#define ANNOTATION_PREFERENCE "kubevirt.io/preference-name"
#define ANNOTATION_CLUSTER_PREFERENCE "kubevirt.io/cluster-preference-name"
#define ANNOTATION_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define ANNOTATION_INITIAL_EVENTS_END "k8s.io/initial-events-end"
#define ANNOTATION_AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"

/* Of a VirtualMachineInstance. */
#define ANNOTATION_VM_TEMPLATE "ferry.io/vm-template"
#define ANNOTATION_ACCELERATOR "ferry.io/accelerator"
#define ANNOTATION_QCOW2 "ferry.io/qcow2"
#define ANNOTATION_HOOKS "hooks.kubevirt.io/hookSidecars" /* refused */
#define ANNOTATION_PARALLEL "ferry.io/parallel-connections"
#define ANNOTATION_ADDRESSES "ferry.io/addresses"
#define ANNOTATION_PROGRESS "ferry.io/progress"
#define ANNOTATION_UNCONFIRMED "ferry.io/unconfirmed"
#define ANNOTATION_RECOVER "ferry.io/recover"
#define ANNOTATION_PORTS_GENERATION "ferry.io/ports-generation"
#define ANNOTATION_TARGET_STATE "ferry.io/target-state"
#define ANNOTATION_SOURCE_DISKS "ferry.io/source-disks"
#define ANNOTATION_TARGET_DISKS "ferry.io/target-disks"
#define ANNOTATION_SOURCE_TROUBLE "ferry.io/source-trouble"
#define ANNOTATION_TARGET_TROUBLE "ferry.io/target-trouble"
#define ANNOTATION_FAILURE "ferry.io/failure"
/* Of a migration. */
#define ANNOTATION_QUEUE "ferry.io/queue"
#define ANNOTATION_RESULT "ferry.io/result"
/* Of a pod. */
#define ANNOTATION_NETWORKS "ferry.io/networks"
/* Of a Node. */
#define ANNOTATION_MIGRATION_ADDRESS "ferry.io/migration-address"
#define ANNOTATION_MIGRATION_NETWORK "ferry.io/migration-network"
#define ANNOTATION_MIGRATION_TROUBLE "ferry.io/migration-network-trouble"
/* Of the Lease of ferry-controller. */
#define ANNOTATION_CLOCK_STEPS "ferry.io/clock-steps"
/* Of the KubeVirt object. */
#define ANNOTATION_INBOUND_LIMIT "ferry.io/parallelInboundMigrationsPerNode"
#define ANNOTATION_BANDWIDTH_BUDGET "ferry.io/migrationBandwidthPerNode"

/* ---- finalizers, taints, resources, images, others -------------------------------------------
 */

#define FINALIZER_VMI "foregroundDeleteVirtualMachine"
#define FINALIZER_MIGRATION "kubevirt.io/migrationJobFinalize"
#define FINALIZER_VM "kubevirt.io/virtualMachineControllerFinalize"

#define TAINT_DRAIN "kubevirt.io/drain" /* unless nodeDrainTaintKey names another */
#define TAINT_NOT_READY "node.kubernetes.io/not-ready"
#define TAINT_UNREACHABLE "node.kubernetes.io/unreachable"

#define RESOURCE_KVM "devices.kubevirt.io/kvm"
#define RESOURCE_VHOST_NET "devices.kubevirt.io/vhost-net"

#define IMAGE_BUILTIN "ferry.io/builtin"         /* guest kernels in Ferry's guest directory */
#define IMAGE_LAUNCHER "ferry.io/ferry-launcher" /* of launcher pods that ferry-pods runs */

#define PREFIX_KUBEVIRT "kubevirt.io/"
#define PREFIX_FERRY "ferry.io/"
#define TYPE_TOKEN "ferry.io/token" /* of the Secret behind a token */
#define EXTRA_ROLE "ferry.io/role"  /* of a user, in the answer to a SelfSubjectReview */

/* ---- conditions ------------------------------------------------------------------------------
 */

/* Of several kinds. */
#define CONDITION_READY "Ready"
/* Of a VirtualMachineInstance, some of a VirtualMachine, too. */
#define CONDITION_PAUSED "Paused"
#define CONDITION_LIVE_MIGRATABLE "LiveMigratable"
#define CONDITION_STORAGE_LIVE_MIGRATABLE "StorageLiveMigratable"
#define CONDITION_MIGRATION_REQUIRED "MigrationRequired"
#define CONDITION_EVICTION_REQUESTED "EvictionRequested"
#define CONDITION_VOLUMES_CHANGE "VolumesChange"
#define CONDITION_VCPU_CHANGE "HotVCPUChange"
#define CONDITION_MEMORY_CHANGE "HotMemoryChange"
#define CONDITION_SYNCHRONIZED "Synchronized"
#define CONDITION_RESTART_REQUIRED "RestartRequired"
#define CONDITION_MANUAL_RECOVERY "ManualRecoveryRequired"
#define CONDITION_FAILURE "Failure"
#define CONDITION_GUEST_RESET "GuestReset"       /* ours */
#define CONDITION_WATCHDOG_FIRED "WatchdogFired" /* ours */
/* Of a migration. */
#define CONDITION_QUOTA "migrationRejectedByResourceQuota"
#define CONDITION_ABORT_REQUESTED "migrationAbortRequested"
#define CONDITION_REFUSED "migrationTargetPodRefused" /* for another reason; ours */
#define CONDITION_NODE_TROUBLE "migrationNodeTrouble" /* ours */
#define CONDITION_FAILED "migrationFailed"            /* ours; its reason is the code */
/* Of a pod. */
#define CONDITION_POD_SCHEDULED "PodScheduled"
#define CONDITION_INITIALIZED "Initialized"
#define CONDITION_CONTAINERS_READY "ContainersReady"

/* ---- objects that are not decoded ------------------------------------------------------------
 */

/* The value of a label, of an annotation; NULL when there is none. */
const char *wire_label(const yyjson_val *object, const char *key);
const char *wire_annotation(const yyjson_val *object, const char *key);
/* Ferry's own are its programs', but for those that people set; so are those by which the queue of
 * moves knows a drain. */
bool wire_annotation_is_programs(const char *key);
