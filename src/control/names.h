/* Names that Ferry shares with KubeVirt: labels, annotations, finalizers, phases, conditions. */
#pragma once

#define LABEL_APP "kubevirt.io"
#define LABEL_APP_LAUNCHER "virt-launcher"
#define LABEL_CREATED_BY "kubevirt.io/created-by"
#define LABEL_NODE_NAME "kubevirt.io/nodeName"
#define LABEL_TARGET_NODE_NAME "kubevirt.io/migrationTargetNodeName"
#define LABEL_MIGRATION_JOB_UID "kubevirt.io/migrationJobUID"
#define LABEL_VMI_NAME "kubevirt.io/vmi-name"
#define LABEL_VM_NAME "vm.kubevirt.io/name"
#define LABEL_HOSTNAME "kubernetes.io/hostname"

#define ANNOTATION_DOMAIN "kubevirt.io/domain"
#define ANNOTATION_TRANSPORT_UNIX "kubevirt.io/migrationTransportUnix"
#define ANNOTATION_MIGRATION_JOB_NAME "kubevirt.io/migrationJobName"
#define ANNOTATION_MEMORY_OVERHEAD "kubevirt.io/memory-overhead-bytes"
#define ANNOTATION_UNSCHEDULABLE_TIMEOUT "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
#define ANNOTATION_PENDING_TIMEOUT "kubevirt.io/migrationPendingPodTimeoutSeconds"
#define ANNOTATION_HEARTBEAT "kubevirt.io/heartbeat"
#define ANNOTATION_PROGRESS "ferry.io/progress"
#define ANNOTATION_QUEUE "ferry.io/queue"
#define ANNOTATION_RESULT "ferry.io/result"
#define ANNOTATION_INBOUND_LIMIT "ferry.io/parallelInboundMigrationsPerNode"
#define ANNOTATION_BANDWIDTH_BUDGET "ferry.io/migrationBandwidthPerNode"

#define FINALIZER_VMI "foregroundDeleteVirtualMachine"
#define FINALIZER_MIGRATION "kubevirt.io/migrationJobFinalize"

/* VMI and migration share some of these. */
#define PHASE_PENDING "Pending"
#define PHASE_SCHEDULING "Scheduling"
#define PHASE_SCHEDULED "Scheduled"
#define PHASE_PREPARING_TARGET "PreparingTarget"
#define PHASE_TARGET_READY "TargetReady"
#define PHASE_RUNNING "Running"
#define PHASE_SUCCEEDED "Succeeded"
#define PHASE_FAILED "Failed"

#define CONDITION_ABORT_REQUESTED "migrationAbortRequested"
#define CONDITION_POD_SCHEDULED "PodScheduled"
#define CONDITION_LIVE_MIGRATABLE "LiveMigratable"
