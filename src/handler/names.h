/* Names that Ferry shares with KubeVirt, as far as the node agent uses them. */
#pragma once

#define LABEL_NODE_NAME "kubevirt.io/nodeName"
#define LABEL_TARGET_NODE_NAME "kubevirt.io/migrationTargetNodeName"
#define LABEL_CREATED_BY "kubevirt.io/created-by"
#define LABEL_HOSTNAME "kubernetes.io/hostname"
#define LABEL_SCHEDULABLE "kubevirt.io/schedulable"
#define LABEL_HOST_MODEL "host-model-cpu.node.kubevirt.io/" /* followed by the model */

#define ANNOTATION_HEARTBEAT "kubevirt.io/heartbeat"
#define ANNOTATION_MIGRATION_ADDRESS "ferry.io/migration-address"
#define ANNOTATION_MIGRATION_NETWORK "ferry.io/migration-network"
#define ANNOTATION_MIGRATION_TROUBLE "ferry.io/migration-network-trouble"
#define ANNOTATION_UNCONFIRMED "ferry.io/unconfirmed"
#define ANNOTATION_TARGET_DISKS "ferry.io/target-disks"
#define ANNOTATION_SOURCE_DISKS "ferry.io/source-disks"
#define ANNOTATION_SOURCE_TROUBLE "ferry.io/source-trouble"
#define ANNOTATION_TARGET_TROUBLE "ferry.io/target-trouble"
#define ANNOTATION_PARALLEL "ferry.io/parallel-connections"
#define ANNOTATION_PROGRESS "ferry.io/progress"
