#include "api/intern.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/count.h"

/* Without short ones: a pointer is eight bytes, but a string of its own costs its length alone. */
static const char *const words[] = {
    /* metadata */
    "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "uid",
    "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "finalizers", "ownerReferences", "controller",
    "blockOwnerDeletion", "generateName", "managedFields", "manager", "operation", "fieldsType",
    "fieldsV1", "subresource",
    /* most kinds */
    "spec", "status", "phase", "conditions", "type", "reason", "message", "lastTransitionTime",
    "lastProbeTime", "lastHeartbeatTime", "observedGeneration", "True", "False", "Unknown", "true",
    "false", "default", "kubevirt.io/v1",
    /* pods */
    "Pod", "restartPolicy", "Never", "Always", "terminationGracePeriodSeconds",
    "automountServiceAccountToken", "containers", "initContainers", "image", "imagePullPolicy",
    "IfNotPresent", "command", "args", "resources", "requests", "limits", "memory",
    "ephemeral-storage", "volumeMounts", "mountPath", "subPath", "readOnly", "volumeDevices",
    "devicePath", "volumes", "emptyDir", "hostPath", "path", "medium", "sizeLimit",
    "persistentVolumeClaim", "claimName", "nodeSelector", "affinity", "nodeAffinity", "podAffinity",
    "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution", "labelSelector", "matchLabels",
    "matchExpressions", "matchFields", "nodeSelectorTerms", "topologyKey", "operator", "values",
    "weight", "podAffinityTerm", "preference", "tolerations", "tolerationSeconds", "effect",
    "NoSchedule", "NoExecute", "Exists", "nodeName", "hostname", "dnsPolicy", "ClusterFirst",
    "schedulerName", "default-scheduler", "securityContext", "runAsUser", "runAsNonRoot",
    "runAsGroup", "fsGroup", "privileged", "allowPrivilegeEscalation", "capabilities",
    "seccompProfile", "serviceAccount", "serviceAccountName", "enableServiceLinks", "priority",
    "preemptionPolicy", "PreemptLowerPriority", "terminationMessagePath", "/dev/termination-log",
    "terminationMessagePolicy", TAINT_NOT_READY, TAINT_UNREACHABLE, "containerStatuses", "ready",
    "started", "state", "lastState", "running", "waiting", "terminated", "startedAt", "finishedAt",
    "exitCode", "restartCount", "imageID", "containerID", "podIP", "podIPs", "hostIP", "hostIPs",
    "startTime", "qosClass", "Burstable", "BestEffort", "Guaranteed", "PodScheduled", "Initialized",
    "ContainersReady", "Ready", "PodReadyToStartContainers", "compute", "ferry-launcher",
    IMAGE_LAUNCHER, "--namespace", "--name", LABEL_HOSTNAME, LABEL_APP, LABEL_APP_LAUNCHER,
    LABEL_CREATED_BY, LABEL_VM_NAME, LABEL_MIGRATION_JOB_UID, ANNOTATION_MIGRATION_JOB_NAME,
    ANNOTATION_DOMAIN, ANNOTATION_TRANSPORT_UNIX, ANNOTATION_MEMORY_OVERHEAD, ANNOTATION_EVICT_ONLY,
    ANNOTATION_EVICTION_IN_PROGRESS, LABEL_SCHEDULABLE, "Pending", "Running", "Succeeded", "Failed",
    "Scheduling", "Scheduled",
    /* VMs and instances */
    "VirtualMachine", "VirtualMachineInstance", "template", "runStrategy", "evictionStrategy",
    "LiveMigrate", "domain", "cores", "sockets", "threads", "model", "host-model", "guest",
    "devices", "disks", "disk", "interfaces", "networks", "multus", "networkName", "masquerade",
    "bridge", "pod", "virtio", "emptyDisk", "capacity", "containerDisk", "cloudInitNoCloud",
    "userData", "machine", "firmware", "bootloader", "features", "clock", FINALIZER_VMI,
    LABEL_NODE_NAME, LABEL_TARGET_NODE_NAME, "phaseTransitionTimestamps",
    "phaseTransitionTimestamp", "activePods", "volumeStatus", "target", "persistentVolumeClaimInfo",
    "accessModes", "volumeMode", "filesystemOverhead", "ReadWriteMany", "ReadWriteOnce",
    "Filesystem", "Block", "migrationMethod", "LiveMigration", "BlockMigration",
    "migrationTransport", "Unix", "LiveMigratable", "StorageLiveMigratable",
    "DisksNotLiveMigratable", "launcherContainerImageVersion", "guestOSInfo", "ipAddress",
    "ipAddresses", "interfaceName", "infoSource", "runtimeUser", "virtualMachineRevisionName",
    "currentCPUTopology", "guestAtBoot", "guestCurrent", "guestRequested", "evacuationNodeName",
    ANNOTATION_PROGRESS,
    /* migrations */
    "VirtualMachineInstanceMigration", "vmiName", "addedNodeSelector", LABEL_VMI_NAME,
    FINALIZER_MIGRATION, ANNOTATION_EVACUATION, ANNOTATION_WORKLOAD_UPDATE, ANNOTATION_RESULT,
    ANNOTATION_QUEUE, ANNOTATION_UNCONFIRMED, "PreparingTarget", "TargetReady", "migrationState",
    "migrationUid", "sourceNode", "sourcePod", "targetNode", "targetPod", "targetNodeAddress",
    "targetDirectMigrationNodePorts", "targetNodeDomainDetected", "targetNodeDomainReadyTimestamp",
    "startTimestamp", "endTimestamp", "mode", "PreCopy", "PostCopy", "Paused", "completed",
    "failed", "failureReason", "abortRequested", "abortStatus", "migrationPolicyName",
    "migrationConfiguration", "nodeDrainTaintKey", TAINT_DRAIN, "parallelOutboundMigrationsPerNode",
    "parallelMigrationsPerCluster", "allowAutoConverge", "bandwidthPerMigration",
    "completionTimeoutPerGiB", "progressTimeout", "maxDowntimeMs", "utilityVolumesTimeout",
    "unsafeMigrationOverride", "allowPostCopy", "disableTLS", "allowWorkloadDisruption",
    "migrationNetworkType", "{\"totalMs\":0}",
    /* nodes and claims */
    "allocatable", "addresses", "nodeInfo", "taints", "unschedulable", ANNOTATION_HEARTBEAT,
    "storageClassName", "volumeName", "storage"};
enum { N_WORDS = FERRY_COUNT(words), SLOTS = 1024, SHORTEST = 3, LONGEST = 63 };
_Static_assert(N_WORDS * 2 < SLOTS, "room in the table");

/* Asked for each string of each object: small enough to stay in the processor's cache. */
static uint64_t lengths[256];  /* of the words that begin with a byte, a bit each */
static uint16_t table[SLOTS];  /* number of a word, from 1 */
static uint8_t sizes[N_WORDS]; /* of the words */
static atomic_bool filled;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t slot_of(const char *text, size_t len)
{
    const unsigned char *t = (const unsigned char *)text;
    uint32_t h = (uint32_t)len;

    h = h * 31 + t[0];
    h = h * 31 + t[len / 2];
    h = h * 31 + t[len - 1];
    h = h * 31 + t[len / 3];
    h = h * 31 + t[len - len / 4 - 1];
    h *= 2654435761u;
    return h >> 22; /* of SLOTS */
}

static void fill(void)
{
    for (size_t i = 0; i < N_WORDS; i++) {
        size_t len = strlen(words[i]), at = slot_of(words[i], len);

        assert(len >= SHORTEST && len <= LONGEST);
        while (table[at]) {
            at = (at + 1) % SLOTS;
        }
        table[at] = (uint16_t)(i + 1);
        sizes[i] = (uint8_t)len;
        lengths[(unsigned char)words[i][0]] |= UINT64_C(1) << len;
    }
    atomic_store_explicit(&filled, true, memory_order_release);
}

const char *api_intern(const char *text, size_t len)
{
    if (len < SHORTEST || len > LONGEST) {
        return NULL;
    }
    if (!atomic_load_explicit(&filled, memory_order_acquire)) {
        pthread_once(&once, fill);
    }
    if (!(lengths[(unsigned char)text[0]] >> len & 1)) {
        return NULL;
    }
    for (size_t at = slot_of(text, len); table[at]; at = (at + 1) % SLOTS) {
        size_t i = table[at] - 1u;

        if (sizes[i] == len && memcmp(words[i], text, len) == 0) {
            return words[i];
        }
    }
    return NULL;
}
