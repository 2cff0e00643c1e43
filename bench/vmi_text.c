#include "vmi_text.h"

enum { NODES = 40 };

void vmi_text_put(struct ferry_buf *b, int i)
{
    ferry_buf_printf(
        b,
        "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\",\"metadata\":{"
        "\"name\":\"web-%06d\",\"namespace\":\"shop\",\"uid\":\"6a4fd0bb-5a4b-4a39-8a70-%012d\","
        "\"resourceVersion\":\"%d\",\"generation\":9,\"creationTimestamp\":\"2026-03-04T05:06:"
        "07Z\","
        "\"labels\":{\"app\":\"shop\",\"tier\":\"front\",\"kubevirt.io/nodeName\":\"node-%d\"},"
        "\"annotations\":{\"kubevirt.io/latest-observed-api-version\":\"v1\","
        "\"ferry.io/progress\":\"{\\\"uid\\\":\\\"m-%d\\\",\\\"phase\\\":\\\"succeeded\\\","
        "\\\"elapsedMs\\\":8123,\\\"totalBytes\\\":4294967296,\\\"downtimeMs\\\":41}\"},"
        "\"finalizers\":[\"foregroundDeleteVirtualMachine\"],\"ownerReferences\":[{\"apiVersion\":"
        "\"kubevirt.io/v1\",\"kind\":\"VirtualMachine\",\"name\":\"web-%06d\",\"uid\":"
        "\"0bd1f3a4-77aa-4c1e-9d7e-%012d\",\"controller\":true,\"blockOwnerDeletion\":true}]},",
        i, i, 100000 + i, i % NODES, i, i, i);
    ferry_buf_printf(
        b,
        "\"spec\":{\"domain\":{\"cpu\":{\"cores\":4,\"sockets\":1,\"threads\":1,\"model\":"
        "\"host-model\"},\"memory\":{\"guest\":\"4Gi\"},\"machine\":{\"type\":\"q35\"},"
        "\"resources\":"
        "{\"requests\":{\"memory\":\"4Gi\",\"cpu\":\"400m\"}},\"firmware\":{\"uuid\":"
        "\"5d307ca9-b3ef-428c-8861-%012d\"},\"devices\":{\"disks\":[{\"name\":\"root\",\"disk\":{"
        "\"bus\":\"virtio\"},\"bootOrder\":1},{\"name\":\"data\",\"disk\":{\"bus\":\"virtio\"},"
        "\"cache\":\"none\"},{\"name\":\"init\",\"disk\":{\"bus\":\"virtio\"}}],\"interfaces\":[{"
        "\"name\":\"default\",\"masquerade\":{},\"model\":\"virtio\",\"macAddress\":"
        "\"02:00:00:%02x:%02x:%02x\"}]}},\"networks\":[{\"name\":\"default\",\"pod\":{}}],"
        "\"volumes\":[{\"name\":\"root\",\"dataVolume\":{\"name\":\"web-root-%06d\"}},{\"name\":"
        "\"data\",\"persistentVolumeClaim\":{\"claimName\":\"web-data-%06d\"}},{\"name\":\"init\","
        "\"cloudInitNoCloud\":{\"userData\":\"#cloud-config\\nhostname: web\\n\"}}],"
        "\"evictionStrategy\":\"LiveMigrate\",\"terminationGracePeriodSeconds\":30,"
        "\"nodeSelector\":{\"zone\":\"a\"},\"tolerations\":[{\"key\":\"dedicated\",\"operator\":"
        "\"Equal\",\"value\":\"vm\",\"effect\":\"NoSchedule\"}]},",
        i, i >> 16 & 255, i >> 8 & 255, i & 255, i, i);
    ferry_buf_printf(
        b,
        "\"status\":{\"phase\":\"Running\",\"nodeName\":\"node-%d\",\"migrationMethod\":"
        "\"LiveMigration\",\"migrationTransport\":\"Unix\",\"qosClass\":\"Burstable\","
        "\"runtimeUser\":107,\"selinuxContext\":\"none\",\"machine\":{\"type\":\"pc-q35-10.0\"},"
        "\"activePods\":{\"7f0c29d4-1f0e-4f0b-8d52-%012d\":\"node-%d\"},"
        "\"launcherContainerImageVersion\":"
        "\"ferry-launcher:1.0\",\"currentCPUTopology\":{\"cores\":4,\"sockets\":1,\"threads\":1},"
        "\"memory\":{\"guestAtBoot\":\"4Gi\",\"guestCurrent\":\"4Gi\",\"guestRequested\":\"4Gi\"},"
        "\"interfaces\":[{\"name\":\"default\",\"ipAddress\":\"10.1.%d.%d\",\"mac\":"
        "\"02:00:00:00:00:01\",\"infoSource\":\"domain\"}],\"volumeStatus\":[{\"name\":\"root\","
        "\"target\":\"vda\",\"persistentVolumeClaimInfo\":{\"claimName\":\"web-root\","
        "\"accessModes\":["
        "\"ReadWriteMany\"],\"volumeMode\":\"Block\",\"capacity\":{\"storage\":\"20Gi\"},"
        "\"requests\":{"
        "\"storage\":\"20Gi\"}}},{\"name\":\"data\",\"target\":\"vdb\"},{\"name\":\"init\","
        "\"target\":"
        "\"vdc\",\"size\":1048576}],",
        i % NODES, i, i % NODES, i >> 8 & 255, i & 255);
    ferry_buf_printf(
        b,
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":\"2026-03-04T05:06:20Z\"},{\"type\":\"LiveMigratable\",\"status\":"
        "\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":null},{\"type\":"
        "\"StorageLiveMigratable\",\"status\":\"True\",\"lastProbeTime\":null,"
        "\"lastTransitionTime\":"
        "null}],\"migrationState\":{\"migrationUid\":\"b2a0a9a3-4f0e-4f4e-b0a2-%012d\","
        "\"sourceNode\":\"node-%d\",\"sourcePod\":\"virt-launcher-web-%06d-abcde\",\"targetNode\":"
        "\"node-%d\",\"targetPod\":\"virt-launcher-web-%06d-fghij\",\"targetNodeAddress\":"
        "\"10.0.0.%d\",\"targetDirectMigrationNodePorts\":{\"43117\":49152,\"43118\":0},"
        "\"targetNodeDomainDetected\":true,\"targetNodeDomainReadyTimestamp\":\"2026-03-04T06:00:"
        "09Z\","
        "\"startTimestamp\":\"2026-03-04T06:00:00Z\",\"endTimestamp\":\"2026-03-04T06:00:09Z\","
        "\"completed\":true,\"mode\":\"PreCopy\",\"migrationConfiguration\":{\"allowAutoConverge\":"
        "false,\"allowPostCopy\":false,\"bandwidthPerMigration\":\"0\",\"completionTimeoutPerGiB\":"
        "150,"
        "\"progressTimeout\":150,\"maxDowntimeMs\":900,\"unsafeMigrationOverride\":false}}}}",
        i, (i + 1) % NODES, i, i % NODES, i, i % 250);
}
