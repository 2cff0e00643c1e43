/* What a launcher pod asks of its node. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/wire/wire_keys.h"
#include "base/str.h"
#include "control/pod/pod_parts.h"

#define MIB (INT64_C(1) << 20)

enum {
    MILLI = 1000,
    CPU_MILLI_PER_VCPU = 100, /* KubeVirt's allocation ratio of 10 */
    OVERHEAD_BASE_MIB = 128,  /* launcher, libvirtd, QEMU without its guest */
    OVERHEAD_VCPU_MIB = 8,
    PAGE_TABLE_SHARE = 512,
};

int64_t pod_memory_overhead(const struct api_vmi *vmi)
{
    return OVERHEAD_BASE_MIB * MIB + OVERHEAD_VCPU_MIB * MIB * vmi->vcpus +
           vmi->memory_bytes / PAGE_TABLE_SHARE;
}

struct resources {
    struct pod_draft *draft;
    yyjson_mut_val *of, *requests; /* limits are made when there is one */
};

static void put_number(struct resources *r, yyjson_mut_val *to, const char *name, int64_t n,
                       const char *unit)
{
    char text[48];

    snprintf(text, sizeof(text), "%" PRId64 "%s", n, unit);
    pod_put_str(r->draft, to, name, text);
}

static void request(struct resources *r, const char *name, int64_t n, const char *unit)
{
    put_number(r, r->requests, name, n, unit);
}

static void limit(struct resources *r, const char *name, int64_t n, const char *unit)
{
    put_number(r, pod_member(r->draft, r->of, "limits"), name, n, unit);
}

/* Whole CPUs of its own, or a share per vCPU. */
static void render_cpu(struct resources *r)
{
    const struct api_machine *m = r->draft->machine;

    if (m->dedicated_cpus) {
        int64_t cpus = r->draft->vmi->vcpus + (m->isolate_emulator ? 1 : 0);

        request(r, "cpu", cpus, "");
        limit(r, "cpu", cpus, "");
        return;
    }
    int64_t milli =
        m->cpu_request_milli > 0 ? m->cpu_request_milli : r->draft->vmi->vcpus * CPU_MILLI_PER_VCPU;
    if (m->cpu_limit_milli > 0 && milli > m->cpu_limit_milli) {
        milli = m->cpu_limit_milli;
    }
    request(r, "cpu", milli, "m");
    if (m->cpu_limit_milli > 0) {
        limit(r, "cpu", m->cpu_limit_milli, "m");
    }
}

/* The guest's memory comes from huge pages or from the ordinary; the overhead always from there. */
static void render_memory(struct resources *r)
{
    const struct api_machine *m = r->draft->machine;
    const struct api_vmi *vmi = r->draft->vmi;
    int64_t overhead = pod_memory_overhead(vmi);
    int64_t ordinary = overhead + (m->hugepages ? 0 : vmi->memory_bytes);

    request(r, "memory", ordinary, "");
    if (m->dedicated_cpus || (m->hugepages && m->memory_limit_bytes > 0)) {
        limit(r, "memory", ordinary, ""); /* guaranteed, or the CPUs are not its own */
    } else if (m->memory_limit_bytes > 0) {
        limit(r, "memory", m->memory_limit_bytes + overhead, "");
    }
    if (m->hugepages) {
        ferry_cleanup_free char *name = ferry_asprintf("hugepages-%s", m->hugepages);

        request(r, name, vmi->memory_bytes, "");
        limit(r, name, vmi->memory_bytes, "");
    }
}

static int64_t count_devices(const struct api_device *list, size_t n, const char *name)
{
    int64_t count = 0;

    for (size_t i = 0; i < n; i++) {
        count += ferry_streq(list[i].device_name, name);
    }
    return count;
}

static void render_devices(struct resources *r, const struct api_device *list, size_t n)
{
    const struct api_machine *m = r->draft->machine;

    for (size_t i = 0; i < n; i++) {
        const char *name = list[i].device_name;

        if (!ferry_str_empty(name)) {
            int64_t count = count_devices(m->host_devices, m->n_host_devices, name) +
                            count_devices(m->gpus, m->n_gpus, name);

            request(r, name, count, "");
            limit(r, name, count, "");
        }
    }
}

void pod_render_resources(struct pod_draft *d, yyjson_mut_val *container)
{
    struct resources r = {.draft = d, .of = pod_put_obj(d, container, "resources")};

    r.requests = pod_put_obj(d, r.of, "requests");
    render_cpu(&r);
    render_memory(&r);
    render_devices(&r, d->machine->host_devices, d->machine->n_host_devices);
    render_devices(&r, d->machine->gpus, d->machine->n_gpus);
    if (pod_is_accelerated(d->r)) {
        limit(&r, RESOURCE_KVM, 1, "");
        request(&r, RESOURCE_KVM, 1, "");
    }
}
