/* Theory of operation. The guest is sampled twice, over one second and over two: the difference
 * tells how far it rewrites the same pages (plan_dirtying_of()). QEMU is asked through libvirt's
 * monitor, because libvirt's own call takes 512 pages a GiB, of a small guest next to none. */
#include "launcher/planner.h"

#include <libvirt/libvirt-qemu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/disk_image.h"
#include "launcher/smaps.h"

enum { WAIT_MS = 8000, STEP_MS = 50, SAMPLE_PAGES = 16384, SMAPS_MAX = 4 << 20 };
#define MIB (INT64_C(1) << 20)

/* `*ret` (optional) gets the answer's document, whose root has the member "return". */
static int ask_qemu(virDomainPtr d, const char *command, yyjson_doc **ret, struct ferry_error *err)
{
    char *text = NULL;
    int rc = 0;

    if (virDomainQemuMonitorCommand(d, command, &text, 0) < 0) {
        return virt_fail(err, "sampling the guest's dirty rate");
    }
    yyjson_doc *doc = NULL;
    if (api_json_parse(text, strlen(text), &doc, err) < 0) {
        rc = ferry_wrap(err, "QEMU's answer");
    } else if (!yyjson_obj_get(yyjson_doc_get_root(doc), "return")) {
        rc = ferry_fail(err, FERRY_CONFLICT, "QEMU does not sample the guest's dirty rate: %s",
                        api_json_str(yyjson_doc_get_root(doc), "/error/desc"));
    }
    free(text);
    if (rc == 0 && ret) {
        *ret = doc;
    } else {
        yyjson_doc_free(doc);
    }
    return rc;
}

/* The sampled rate once it is there; negative while it is measured. */
static int read_rate(virDomainPtr d, int64_t *ret, struct ferry_error *err)
{
    yyjson_doc *doc = NULL;
    int rc = ask_qemu(d, "{\"execute\":\"query-dirty-rate\"}", &doc, err);

    *ret = -1;
    if (rc == 0) {
        const yyjson_val *root = yyjson_doc_get_root(doc);

        if (ferry_streq(api_json_str(root, "/return/status"), "measured")) {
            *ret = api_json_int(root, "/return/dirty-rate", 0) * MIB;
        }
        yyjson_doc_free(doc);
    }
    return rc;
}

/* Distinct bytes that the guest dirties within `seconds`. */
static int sample(virDomainPtr d, int seconds, int64_t *ret, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + (seconds * 1000 + WAIT_MS) * FERRY_NS_PER_MS;
    ferry_cleanup_free char *command =
        ferry_asprintf("{\"execute\":\"calc-dirty-rate\",\"arguments\":{\"calc-time\":%d,"
                       "\"sample-pages\":%d}}",
                       seconds, SAMPLE_PAGES);
    int rc = ask_qemu(d, command, NULL, err);

    while (rc == 0 && (rc = read_rate(d, ret, err)) == 0 && *ret < 0) {
        if (ferry_now_ns() >= deadline) {
            return ferry_fail(err, FERRY_RETRY, "QEMU does not come to an end with sampling");
        }
        ferry_sleep_ms(STEP_MS);
    }
    *ret *= seconds;
    return rc;
}

/* Of QEMU's own process, where it is one of ours; -1 when that cannot be told. */
static int64_t resident_of_guest(virDomainPtr d, int64_t guest_bytes)
{
    const char *run_dir = getenv("XDG_RUNTIME_DIR");
    ferry_cleanup_buf struct ferry_buf pid = {0};
    ferry_cleanup_buf struct ferry_buf maps = {0};
    ferry_cleanup_free char *pid_file =
        ferry_asprintf("%s/libvirt/qemu/run/%s.pid", run_dir ? run_dir : "", virDomainGetName(d));

    if (ferry_read_file(pid_file, 32, &pid, NULL) < 0) {
        return -1;
    }
    ferry_buf_append(&pid, "", 1);
    ferry_cleanup_free char *path = ferry_asprintf("/proc/%ld/smaps", atol(pid.data));
    if (ferry_read_file(path, SMAPS_MAX, &maps, NULL) < 0) {
        return -1;
    }
    ferry_buf_append(&maps, "", 1);
    return smaps_guest_resident(maps.data, guest_bytes);
}

/* Memory that the guest has touched: untouched pages cost next to nothing. */
static int64_t memory_in_use(virDomainPtr d, int64_t guest_bytes)
{
    virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
    int64_t resident = resident_of_guest(d, guest_bytes);

    if (resident >= 0) {
        return resident;
    }
    int n = virDomainMemoryStats(d, stats, VIR_DOMAIN_MEMORY_STAT_NR, 0);
    for (int i = 0; i < n; i++) {
        int64_t bytes = (int64_t)stats[i].val * 1024;

        if (stats[i].tag == VIR_DOMAIN_MEMORY_STAT_RSS && bytes > 0 && bytes < guest_bytes) {
            return bytes;
        }
    }
    return guest_bytes;
}

static int check(const struct context *c, const struct state_values *v, struct ferry_error *err)
{
    struct view now;
    int rc = virt_view(c->virt, &now, err);

    if (rc < 0) {
        return rc;
    }
    if (!view_active(&now)) {
        return ferry_fail(err, FERRY_CONFLICT, "there is no running guest here");
    }
    if (!state_migration_over(&v->migration)) {
        return ferry_fail(err, FERRY_CONFLICT, "the guest is being moved");
    }
    return 0;
}

static int measure(const struct context *c, struct plan_input *in, struct ferry_error *err)
{
    int64_t one = 0, two = 0;
    virt_cleanup_domain virDomainPtr d = virt_domain(c->virt, err);

    if (!d) {
        return -(int)err->cls;
    }
    int rc = sample(d, 1, &one, err);
    if (rc < 0 || (rc = sample(d, 2, &two, err)) < 0) {
        return rc;
    }
    ferry_cleanup_free char *xml = virDomainGetXMLDesc(d, 0);
    in->vfio = xml && strstr(xml, "<hostdev");
    in->memory_bytes = memory_in_use(d, in->guest_bytes);
    in->dirtying = plan_dirtying_of(one, two, in->memory_bytes);
    return 0;
}

int planner_run(const struct context *c, const struct migrate_options *options,
                const struct api_vmi *vmi, char **ret_json, struct ferry_error *err)
{
    struct plan_input in = {.policy = *options, .path_bytes_per_s = options->path_bytes_per_s};
    struct disks disks = {0};
    struct state_values v;
    struct plan plan;

    state_get(c->state, &v);
    in.guest_bytes = v.memory_bytes;
    if (options->bandwidth_bytes_per_s &&
        (!in.path_bytes_per_s || options->bandwidth_bytes_per_s < in.path_bytes_per_s)) {
        in.path_bytes_per_s = options->bandwidth_bytes_per_s;
    }
    if (!in.path_bytes_per_s) {
        return ferry_fail(err, FERRY_INVALID,
                          "options.pathBytesPerS: what the path carries must be known for a plan");
    }
    int rc = check(c, &v, err);
    if (rc < 0 || (vmi && (rc = disks_decode(vmi, &disks, err)) < 0) ||
        (rc = disk_image_copied_bytes(&disks, c->domain.disk_dir, &in.disk_bytes, err)) < 0 ||
        (rc = measure(c, &in, err)) < 0) {
        return rc;
    }
    plan_make(&in, &plan);
    *ret_json = plan_json(&in, &plan);
    return 0;
}
