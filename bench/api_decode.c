/* api_decode [VMIS [ROUNDS]]: how fast a list of VMIs becomes an informer's cache: JSON text as it
 * comes from the API server, page by page, to decoded, indexed objects. Prints the size of the
 * list, MB/s (median and best of ROUNDS) and memory per object. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "kube/cache.h"
#include "kube/client.h"

enum { PAGE = 500, MAX_ROUNDS = 101, NODES = 40 };

/* A running VMI as a site has it: disks, networks, conditions, a move behind it. */
static void put_vmi(struct ferry_buf *b, int i)
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

static struct ferry_buf *make_pages(int vmis, size_t *ret_n, size_t *ret_bytes)
{
    size_t n = ((size_t)vmis + PAGE - 1) / PAGE;
    struct ferry_buf *pages = ferry_xcalloc(n, sizeof(*pages));

    *ret_bytes = 0;
    for (size_t p = 0; p < n; p++) {
        ferry_buf_puts(&pages[p],
                       "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":"
                       "\"VirtualMachineInstanceList\",\"metadata\":{\"resourceVersion\":"
                       "\"123\"},\"items\":[");
        for (int i = (int)p * PAGE; i < vmis && i < (int)(p + 1) * PAGE; i++) {
            ferry_buf_puts(&pages[p], i % PAGE ? "," : "");
            put_vmi(&pages[p], i);
        }
        ferry_buf_puts(&pages[p], "]}");
        *ret_bytes += pages[p].len;
    }
    *ret_n = n;
    return pages;
}

static char *by_node(const struct api_object *o)
{
    return ferry_strdup(o->u.vmi.node_name);
}

/* Seconds; the cache is the caller's. `scratch` holds a page: reading uses it up. */
static double decode(const struct ferry_buf *pages, size_t n, char *scratch,
                     struct kube_cache *cache)
{
    int64_t spent = 0;

    kube_cache_begin_round(cache);
    for (size_t p = 0; p < n; p++) {
        kube_cleanup_list struct kube_list list = {0};
        ferry_cleanup_free char *next = NULL;
        struct ferry_error err;

        memcpy(scratch, pages[p].data, pages[p].len); /* what receiving would have done */
        int64_t begin = ferry_now_ns();
        if (kube_list_add_page(&list, api_resource_of_kind(API_KIND_VMI), scratch, pages[p].len,
                               &next, &err) < 0) {
            fprintf(stderr, "%s\n", err.msg);
            exit(1);
        }
        for (size_t i = 0; i < list.n; i++) {
            api_cleanup_object struct api_object *old = NULL;

            kube_cache_put(cache, list.items[i], &old);
        }
        kube_list_done(&list);
        spent += ferry_now_ns() - begin;
    }
    size_t gone = 0;
    free(kube_cache_end_round(cache, &gone));
    return (double)spent / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int vmis = argc > 1 ? atoi(argv[1]) : 10000, rounds = argc > 2 ? atoi(argv[2]) : 11;
    double took[MAX_ROUNDS];
    size_t n, bytes, most = 0;
    int64_t used = 0;

    if (vmis < 1 || vmis > 1000000 || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: api_decode [VMIS [ROUNDS]]\n");
        return 2;
    }
    struct ferry_buf *pages = make_pages(vmis, &n, &bytes);
    for (size_t p = 0; p < n; p++) {
        most = pages[p].len > most ? pages[p].len : most;
    }
    char *scratch = ferry_xcalloc(1, most + YYJSON_PADDING_SIZE);
    for (int r = 0; r < rounds; r++) {
        struct kube_cache cache = {.index = by_node};
        int64_t before = (int64_t)(mallinfo2().uordblks + mallinfo2().hblkhd);

        took[r] = decode(pages, n, scratch, &cache);
        used = (int64_t)(mallinfo2().uordblks + mallinfo2().hblkhd) - before;
        if (cache.n != (size_t)vmis) {
            fprintf(stderr, "%zu of %d VMIs are in the cache\n", cache.n, vmis);
            return 1;
        }
        kube_cache_done(&cache);
    }
    qsort(took, (size_t)rounds, sizeof(took[0]), by_value);
    printf("%d VMIs, %.1f MB: %.0f MB/s (best %.0f), %" PRId64
           " bytes of memory per object of %zu\n",
           vmis, (double)bytes / 1e6, (double)bytes / 1e6 / took[rounds / 2],
           (double)bytes / 1e6 / took[0], used / vmis, bytes / (size_t)vmis);
    for (size_t p = 0; p < n; p++) {
        ferry_buf_done(&pages[p]);
    }
    free(pages);
    free(scratch);
    return 0;
}
