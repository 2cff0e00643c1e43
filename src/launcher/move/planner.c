/* Theory of operation. The guest is sampled twice, over one second and over two: the difference
 * tells how far it rewrites the same pages (plan_dirtying_of()). */
#include "launcher/move/planner.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/object.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/domain/disk_image.h"
#include "launcher/domain/smaps.h"
#include "launcher/move/dirty_rate.h"
#include "launcher/move/unplug.h"

enum { SMAPS_MAX = 4 << 20 };

/* Of QEMU's own process, where it is one of ours; -1 when that cannot be told. */
static int64_t resident_of_guest(virDomainPtr d, int64_t guest_bytes)
{
    const char *run_dir = getenv("XDG_RUNTIME_DIR");
    ferry_cleanup_buf struct ferry_buf pid = {0};
    ferry_cleanup_buf struct ferry_buf maps = {0};
    ferry_cleanup_free char *pid_file =
        ferry_asprintf("%s/libvirt/qemu/run/%s.pid", run_dir ? run_dir : "", virDomainGetName(d));

    long long number = 0;

    if (ferry_read_file(pid_file, 32, &pid, NULL) < 0) {
        return -1;
    }
    ferry_buf_append(&pid, "", 1);
    pid.data[strcspn(pid.data, "\n")] = '\0';
    if (ferry_parse_int(pid.data, 2, INT32_MAX, &number, NULL) < 0) {
        return -1;
    }
    ferry_cleanup_free char *path = ferry_asprintf("/proc/%lld/smaps", number);
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
    int rc = dirty_rate_sample(d, 1, &one, err);
    if (rc < 0 || (rc = dirty_rate_sample(d, 2, &two, err)) < 0) {
        return rc;
    }
    in->vfio = unplug_keeps_some(c); /* as the move will see it */
    in->memory_bytes = memory_in_use(d, in->guest_bytes);
    in->dirtying = plan_dirtying_of(one, two, in->memory_bytes);
    return 0;
}

int planner_run(const struct context *c, const struct wire_options *options,
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
    if (rc < 0 || (vmi && (rc = disk_image_find(vmi, c->domain.disk_dir, &disks, err)) < 0) ||
        (rc = disk_image_copied_bytes(&disks, c->domain.disk_dir, &in.disk_bytes, err)) < 0 ||
        (rc = measure(c, &in, err)) < 0) {
        return rc;
    }
    plan_make(&in, &plan);
    *ret_json = plan_json(&in, &plan);
    return 0;
}
