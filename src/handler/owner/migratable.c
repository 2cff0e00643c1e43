#include "handler/owner/migratable.h"

#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "api/object.h"
#include "api/wire/wire_keys.h"
#include "base/count.h"
#include "base/str.h"

static yyjson_val *at(const yyjson_val *v, const char *pointer)
{
    return v ? yyjson_ptr_get((yyjson_val *)(uintptr_t)v, pointer) : NULL;
}

/* A feature that is named is on unless it says otherwise. */
static bool feature_on(const struct api_vmi *vmi, const char *pointer)
{
    yyjson_val *f = at(vmi->spec, pointer);

    return yyjson_is_obj(f) && !yyjson_is_false(yyjson_obj_get(f, "enabled"));
}

/* ---- the guest --------------------------------------------------------------------------------
 */

static bool on_pod_network(const struct api_vmi *vmi, const char *interface)
{
    yyjson_val *n;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, "/networks"), i, max, n)
    {
        if (yyjson_obj_get(n, "pod") && ferry_streq(api_json_str(n, "/name"), interface)) {
            return true;
        }
    }
    return false;
}

/* Only what translates addresses lets a guest keep its own when its pod gets another. */
static bool keeps_pod_address(const struct api_vmi *vmi, yyjson_val *interface)
{
    bool bridge_allowed = api_map_get(&vmi->meta.annotations, ANNOTATION_ALLOW_POD_BRIDGE) != NULL;

    return yyjson_obj_get(interface, "masquerade") || yyjson_obj_get(interface, "passt") ||
           yyjson_obj_get(interface, "passtBinding") ||
           ferry_streq(api_json_str(interface, "/binding/name"), "passt") ||
           (bridge_allowed && yyjson_obj_get(interface, "bridge"));
}

/* Secondary networks never stand in the way. */
static bool bound_to_pod(const struct api_vmi *vmi)
{
    yyjson_val *x;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, "/domain/devices/interfaces"), i, max, x)
    {
        if (on_pod_network(vmi, api_json_str(x, "/name")) && !keeps_pod_address(vmi, x)) {
            return true;
        }
    }
    return false;
}

static bool has_host_devices(const struct api_vmi *vmi)
{
    return yyjson_arr_size(at(vmi->spec, "/domain/devices/hostDevices")) > 0 ||
           yyjson_arr_size(at(vmi->spec, "/domain/devices/gpus")) > 0;
}

static bool has_sev(const struct api_vmi *vmi)
{
    return at(vmi->spec, "/domain/launchSecurity/sev") ||
           at(vmi->spec, "/domain/launchSecurity/snp");
}

static bool has_tdx(const struct api_vmi *vmi)
{
    return at(vmi->spec, "/domain/launchSecurity/tdx");
}

/* On s390x any launch security is Secure Execution. */
static bool has_secure_execution(const struct api_vmi *vmi)
{
    return at(vmi->spec, "/domain/launchSecurity") &&
           ferry_streq(api_json_str(vmi->spec, "/architecture"), "s390x");
}

static bool asks_for_invtsc(const struct api_vmi *vmi)
{
    yyjson_val *f;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, "/domain/cpu/features"), i, max, f)
    {
        const char *policy = api_json_str(f, "/policy");

        if (ferry_streq(api_json_str(f, "/name"), "invtsc") &&
            (ferry_str_empty(policy) || ferry_streq(policy, "require"))) {
            return true;
        }
    }
    return false;
}

/* Such a guest goes only where the clock runs at the same rate, and nobody said which that is. */
static bool lacks_tsc(const struct api_vmi *vmi)
{
    return (feature_on(vmi, "/domain/features/hyperv/reenlightenment") || asks_for_invtsc(vmi)) &&
           !at(vmi->status, "/topologyHints/tscFrequency");
}

static bool has_hyperv_passthrough(const struct api_vmi *vmi)
{
    return feature_on(vmi, "/domain/features/hypervPassthrough");
}

/* It is held by the host, not by the guest. */
static bool has_reservation(const struct api_vmi *vmi)
{
    yyjson_val *d;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, "/domain/devices/disks"), i, max, d)
    {
        if (api_json_bool(d, "/lun/reservation", false)) {
            return true;
        }
    }
    return false;
}

bool migratable_needs_host_model(const struct api_vmi *vmi)
{
    return ferry_streq(api_json_str(vmi->spec, "/domain/cpu/model"), "host-model");
}

/* In KubeVirt's order: the first that holds is the reason. */
static const struct {
    const char *reason, *message;
    bool (*holds)(const struct api_vmi *vmi);
    bool unless_host_model_known, only_storage;
} checks[] = {
    {"InterfaceNotLiveMigratable",
     "an interface on the pod network uses neither masquerade nor passt", bound_to_pod, false,
     false},
    {"CPUModeLiveMigratable", "the CPU is host-model, and the node does not say which that is",
     migratable_needs_host_model, true, false},
    {"HostDeviceNotLiveMigratable", "the VMI uses devices of its host", has_host_devices, false,
     false},
    {"SEVNotLiveMigratable", "the VMI uses SEV", has_sev, false, false},
    {"TDXNotLiveMigratable", "the VMI uses TDX", has_tdx, false, false},
    {"SecureExecutionNotLiveMigratable", "the VMI uses Secure Execution", has_secure_execution,
     false, false},
    {"NoTSCFrequencyNotLiveMigratable",
     "the VMI needs a TSC of a known frequency, and status.topologyHints has none", lacks_tsc,
     false, false},
    {"HypervPassthroughNotLiveMigratable", "the VMI uses HyperV passthrough",
     has_hyperv_passthrough, false, false},
    {"PersistentReservationNotLiveMigratable", "the VMI uses SCSI persistent reservations",
     has_reservation, false, true},
};

/* ---- its volumes ------------------------------------------------------------------------------
 */

static bool shared_claim(const struct api_vmi *vmi, const char *volume)
{
    yyjson_val *v, *mode;
    size_t i, max, k, kmax;

    yyjson_arr_foreach(at(vmi->status, "/volumeStatus"), i, max, v)
    {
        if (!ferry_streq(api_json_str(v, "/name"), volume)) {
            continue;
        }
        yyjson_arr_foreach(at(v, "/persistentVolumeClaimInfo/accessModes"), k, kmax, mode)
        {
            if (ferry_streq(yyjson_get_str(mode), "ReadWriteMany")) {
                return true;
            }
        }
    }
    return false;
}

/* Its content goes with the move. */
static bool is_copied(const struct api_vmi *vmi, const char *volume)
{
    for (size_t i = 0; i < vmi->n_migrated_volumes; i++) {
        if (ferry_streq(vmi->migrated_volumes[i].volume, volume)) {
            return true;
        }
    }
    return false;
}

static yyjson_val *device_of(const struct api_vmi *vmi, const char *list, const char *volume)
{
    yyjson_val *d;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, list), i, max, d)
    {
        if (ferry_streq(api_json_str(d, "/name"), volume)) {
            return d;
        }
    }
    return NULL;
}

/* The target makes these anew, and no guest has written to them. */
static bool made_anew(const struct api_vmi *vmi, const char *volume)
{
    yyjson_val *cdrom = yyjson_obj_get(device_of(vmi, "/domain/devices/disks", volume), "cdrom");

    return device_of(vmi, "/domain/devices/filesystems", volume) ||
           (cdrom && !yyjson_is_false(yyjson_obj_get(cdrom, "readonly")));
}

/* What speaks against moving a volume, or NULL; `*block` is set when it must be copied. */
static const char *judge_volume(const struct api_vmi *vmi, yyjson_val *v, bool *block)
{
    const char *name = api_json_str(v, "/name");
    const char *why = NULL;

    if (yyjson_obj_get(v, "persistentVolumeClaim") || yyjson_obj_get(v, "dataVolume")) {
        bool copied = is_copied(vmi, name);

        *block = *block || copied;
        why = copied || shared_claim(vmi, name) ? NULL : "its claim is not ReadWriteMany";
    } else if (yyjson_obj_get(v, "hostDisk")) {
        why = api_json_bool(v, "/hostDisk/shared", false) ? NULL : "its host disk is not shared";
    } else {
        *block = *block || !made_anew(vmi, name);
    }
    *block = *block || why;
    return why;
}

static void judge_volumes(const struct api_vmi *vmi, struct migratable *m)
{
    yyjson_val *v;
    size_t i, max;

    yyjson_arr_foreach(at(vmi->spec, "/volumes"), i, max, v)
    {
        const char *why = judge_volume(vmi, v, &m->block);

        if (why && m->yes) {
            m->yes = false;
            m->reason = "DisksNotLiveMigratable";
            snprintf(m->message, sizeof(m->message), "volume %.100s: %s",
                     api_json_str(v, "/name") ? api_json_str(v, "/name") : "", why);
        }
    }
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static void add_storage(struct migratable *m, const char *reason, const char *message)
{
    size_t n = strlen(m->storage_message);

    snprintf(m->storage_message + n, sizeof(m->storage_message) - n, "%s%s: %s", n ? "; " : "",
             reason, message);
    m->storage = false;
}

struct migratable migratable_of(const struct api_vmi *vmi, bool host_model_known)
{
    struct migratable m = {.yes = true, .storage = true};

    for (size_t i = 0; i < FERRY_COUNT(checks); i++) {
        if ((checks[i].unless_host_model_known && host_model_known) || !checks[i].holds(vmi)) {
            continue;
        }
        add_storage(&m, checks[i].reason, checks[i].message);
        if (m.yes && !checks[i].only_storage) {
            m.yes = false;
            m.reason = checks[i].reason;
            snprintf(m.message, sizeof(m.message), "%s", checks[i].message);
        }
    }
    judge_volumes(vmi, &m);
    return m;
}
