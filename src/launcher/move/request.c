#include "launcher/move/request.h"
#include "launcher/move/dirty_limit.h"

#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/wire/wire_reason.h"
#include "base/log.h"
#include "base/str.h"
#include "launcher/move/migrate_call.h"
#include "rpc/rpc_judge.h"

/* Compares the images on both sides before a byte is copied. Larger ones at the destination are
 * used in part, and a file may become a device or the other way round: `*ret_xml` gets the domain
 * XML that says so, or NULL. */
static int check_images(const struct request *r, virDomainPtr d, struct request_result *call,
                        char **ret_xml)
{
    struct disks_edit edits[DISKS_MAX];
    size_t n = 0;

    *ret_xml = NULL;
    for (size_t i = 0; i < r->disks->n; i++) {
        const struct disk *disk = &r->disks->list[i];
        const struct disks_size *there = disks_size_of(r->target_disks, disk->name);
        bool other_mode = disk->block != disk->block_there;
        virDomainBlockInfo here;

        if (!disk->copied || !there) {
            if (other_mode) {
                edits[n++] = (struct disks_edit){.disk = disk};
            }
            continue;
        }
        if (virDomainGetBlockInfo(d, disk->dev, &here, 0) < 0) {
            return -1;
        }
        int64_t need = (int64_t)here.capacity;
        if (there->bytes < need) {
            call->refused = REASON_DESTINATION_TOO_SMALL;
            snprintf(call->text, sizeof(call->text),
                     "volume %s has %lld bytes, its destination %lld", disk->name, (long long)need,
                     (long long)there->bytes);
            return -1;
        }
        /* A slice is of the file, and what the guest sees of a qcow2 is not a part of it. */
        if (there->bytes > need && !ferry_streq(disk->format, "raw")) {
            call->refused = REASON_REFUSED;
            snprintf(call->text, sizeof(call->text),
                     "volume %s has %lld bytes, its destination %lld, and an image in %s cannot be "
                     "used in part: it must have the same size",
                     disk->name, (long long)need, (long long)there->bytes, disk->format);
            return -1;
        }
        if (there->bytes > need || other_mode) {
            edits[n++] = (struct disks_edit){disk, need};
        }
    }
    ferry_cleanup_free char *xml = n ? virDomainGetXMLDesc(d, VIR_DOMAIN_XML_MIGRATABLE) : NULL;
    const char *dir = r->c->domain.disk_dir;
    return n == 0 || (xml && disks_edit_xml(xml, dir, edits, n, ret_xml, NULL) == 0) ? 0 : -1;
}

static bool copies_disks(const struct request *r)
{
    for (size_t i = 0; i < r->disks->n; i++) {
        if (r->disks->list[i].copied) {
            return true;
        }
    }
    return false;
}

/* KubeVirt's strategy knows auto-converge alone. */
static bool limits_writes(const struct request *r)
{
    return r->options->strategy != WIRE_STRATEGY_KUBEVIRT && dirty_limit_vcpus(r->c) > 0;
}

/* How libvirt is to be called. */
static int prepare_call(const struct request *r, struct migrate_call *ret)
{
    unsigned long version = 0;

    if (virt_qemu_version(r->c->virt, &version, NULL) < 0) {
        return -1;
    }
    migrate_call_make(r->options,
                      &(struct migrate_call_input){.dir = r->c->migration_dir,
                                                   .key = r->c->uid,
                                                   .paused = r->paused,
                                                   .vfio = r->vfio,
                                                   .system = r->c->system,
                                                   .copies_disks = copies_disks(r),
                                                   .limits_writes = limits_writes(r),
                                                   .qemu_version = version},
                      ret);
    if (ret->note) {
        record_note(r->record, "note", ret->note);
        ferry_warn("migration parameters differ from the request", F_STR("why", ret->note));
    }
    return 0;
}

static void add_disks(const struct request *r, const struct migrate_call *call,
                      virTypedParameterPtr *params, int *n, int *max)
{
    if (!call->disks_uri) {
        return;
    }
    virTypedParamsAddString(params, n, max, VIR_MIGRATE_PARAM_DISKS_URI, call->disks_uri);
    for (size_t i = 0; i < r->disks->n; i++) {
        if (r->disks->list[i].copied) {
            virTypedParamsAddString(params, n, max, VIR_MIGRATE_PARAM_MIGRATE_DISKS,
                                    r->disks->list[i].dev);
#ifdef VIR_MIGRATE_PARAM_MIGRATE_DISKS_DETECT_ZEROES
            /* what is empty here stays empty there */
            virTypedParamsAddString(params, n, max, VIR_MIGRATE_PARAM_MIGRATE_DISKS_DETECT_ZEROES,
                                    r->disks->list[i].dev);
#endif
        }
    }
}

static void add_parameters(const struct request *r, const struct migrate_call *call,
                           const char *xml, virTypedParameterPtr *params, int *n)
{
    int max = 0;

    add_disks(r, call, params, n, &max);
    if (xml) {
        virTypedParamsAddString(params, n, &max, VIR_MIGRATE_PARAM_DEST_XML, xml);
        virTypedParamsAddString(params, n, &max, VIR_MIGRATE_PARAM_PERSIST_XML, xml);
    }
    virTypedParamsAddString(params, n, &max, VIR_MIGRATE_PARAM_URI, call->memory_uri);
    if (call->bandwidth_mib_per_s) {
        virTypedParamsAddULLong(params, n, &max, VIR_MIGRATE_PARAM_BANDWIDTH,
                                call->bandwidth_mib_per_s);
    }
    if (call->switchover_mib_per_s) {
        virTypedParamsAddULLong(params, n, &max, VIR_MIGRATE_PARAM_BANDWIDTH_AVAIL_SWITCHOVER,
                                call->switchover_mib_per_s);
    }
    if (call->connections) {
        virTypedParamsAddInt(params, n, &max, VIR_MIGRATE_PARAM_PARALLEL_CONNECTIONS,
                             call->connections);
    }
    if (call->zstd) {
        virTypedParamsAddString(params, n, &max, VIR_MIGRATE_PARAM_COMPRESSION, "zstd");
    }
}

void request_make(const struct request *r, struct request_result *ret)
{
    struct ferry_error err;
    struct migrate_call call = {0};
    virTypedParameterPtr params = NULL;
    int n = 0;

    *ret = (struct request_result){.known = true};
    virt_cleanup_domain virDomainPtr d = virt_domain(r->c->virt, &err);
    if (!d) {
        snprintf(ret->text, sizeof(ret->text), "%s", err.msg);
        return;
    }
    ferry_cleanup_free char *xml = NULL;
    if (check_images(r, d, ret, &xml) == 0 && prepare_call(r, &call) == 0) {
        add_parameters(r, &call, xml, &params, &n);
        ret->ok =
            virDomainMigrateToURI3(d, call.destination_uri, params, (unsigned)n, call.flags) == 0;
    }
    if (!ret->ok && !ret->refused) {
        virErrorPtr e = virGetLastError();

        if (e && e->code == VIR_ERR_ACCESS_DENIED && ferry_streq(e->str2, RPC_REFUSED)) {
            ret->refused =
                REASON_CONTROL_REFUSED; /* by the target's filter, whose word libvirt hands on */
        }
        ret->code = e ? e->code : 0;
        snprintf(ret->text, sizeof(ret->text), "%s", e && e->message ? e->message : "");
    }
    virTypedParamsFree(params, n);
    migrate_call_done(&call);
}
