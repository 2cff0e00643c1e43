#include "launcher/planner.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"

/* Longer sampling sees more distinct pages of a small working set per second, not less: one second
 * is what the model of rounds wants. */
enum { SAMPLE_S = 1, WAIT_MS = 8000, STEP_MS = 50 };
#define MIB (INT64_C(1) << 20)

/* The sampled rate once it is there; negative while it is measured. */
static int64_t read_rate(virDomainPtr d)
{
    virDomainPtr list[] = {d, NULL};
    virDomainStatsRecordPtr *stats = NULL;
    int64_t rate = -1;

    if (virDomainListGetStats(list, VIR_DOMAIN_STATS_DIRTYRATE, &stats, 0) < 1) {
        return -1;
    }
    virTypedParameterPtr p = stats[0]->params;
    int n = stats[0]->nparams, status = VIR_DOMAIN_DIRTYRATE_UNSTARTED;
    long long mib = 0;
    virTypedParamsGetInt(p, n, VIR_DOMAIN_STATS_DIRTYRATE_CALC_STATUS, &status);
    if (status == VIR_DOMAIN_DIRTYRATE_MEASURED &&
        virTypedParamsGetLLong(p, n, VIR_DOMAIN_STATS_DIRTYRATE_MEGABYTES_PER_SECOND, &mib) == 1) {
        rate = mib * MIB;
    }
    virDomainStatsRecordListFree(stats);
    return rate;
}

static int sample_dirty_rate(virDomainPtr d, int64_t *ret, struct ferry_error *err)
{
    int64_t deadline = ferry_now_ns() + WAIT_MS * FERRY_NS_PER_MS;

    if (virDomainStartDirtyRateCalc(d, SAMPLE_S, VIR_DOMAIN_DIRTYRATE_MODE_PAGE_SAMPLING) < 0) {
        return virt_fail(err, "sampling the guest's dirty rate");
    }
    while ((*ret = read_rate(d)) < 0) {
        if (ferry_now_ns() >= deadline) {
            return ferry_fail(err, FERRY_RETRY, "QEMU does not come to an end with sampling");
        }
        ferry_sleep_ms(STEP_MS);
    }
    return 0;
}

/* Memory that the guest has touched: untouched pages cost next to nothing. */
static int64_t memory_in_use(virDomainPtr d, int64_t guest_bytes)
{
    virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
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

int planner_run(const struct context *c, const struct migrate_options *options, char **ret_json,
                struct ferry_error *err)
{
    struct plan_input in = {.policy = *options, .path_bytes_per_s = options->path_bytes_per_s};
    struct state_values v;
    struct plan plan;

    state_get(c->state, &v);
    if (options->bandwidth_bytes_per_s &&
        (!in.path_bytes_per_s || options->bandwidth_bytes_per_s < in.path_bytes_per_s)) {
        in.path_bytes_per_s = options->bandwidth_bytes_per_s;
    }
    if (!in.path_bytes_per_s) {
        return ferry_fail(err, FERRY_INVALID,
                          "options.pathBytesPerS: what the path carries must be known for a plan");
    }
    int rc = check(c, &v, err);
    if (rc < 0) {
        return rc;
    }
    virt_cleanup_domain virDomainPtr d = virt_domain(c->virt, err);
    if (!d) {
        return -(int)err->cls;
    }
    rc = sample_dirty_rate(d, &in.dirty_bytes_per_s, err);
    if (rc < 0) {
        return rc;
    }
    ferry_cleanup_free char *xml = virDomainGetXMLDesc(d, 0);
    in.vfio = xml && strstr(xml, "<hostdev");
    in.data_bytes = memory_in_use(d, v.memory_bytes);
    plan_make(&in, &plan);
    *ret_json = plan_json(&in, &plan);
    return 0;
}
