#include "handler/migratable.h"

#include <yyjson.h>

#include "api/object.h"
#include "base/str.h"

static yyjson_val *at(const yyjson_val *v, const char *pointer)
{
    return v ? yyjson_ptr_get((yyjson_val *)v, pointer) : NULL;
}

static struct migratable no(const char *reason, const char *message)
{
    return (struct migratable){.reason = reason, .message = message};
}

/* The pod network with a bridge keeps the pod's address, which stays behind. */
static bool bridged_pod_network(const struct api_vmi *vmi)
{
    yyjson_val *networks = at(vmi->spec, "/networks"), *n;
    yyjson_val *interfaces = at(vmi->spec, "/domain/devices/interfaces"), *x;
    size_t i, max, k, kmax;

    yyjson_arr_foreach(networks, i, max, n)
    {
        if (!yyjson_obj_get(n, "pod")) {
            continue;
        }
        yyjson_arr_foreach(interfaces, k, kmax, x)
        {
            if (ferry_streq(api_json_str(x, "/name"), api_json_str(n, "/name")) &&
                yyjson_obj_get(x, "bridge")) {
                return true;
            }
        }
    }
    return false;
}

static bool shared_claim(const struct api_vmi *vmi, const char *volume)
{
    yyjson_val *list = at(vmi->status, "/volumeStatus"), *v, *mode;
    size_t i, max, k, kmax;

    yyjson_arr_foreach(list, i, max, v)
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

struct migratable migratable_of(const struct api_vmi *vmi)
{
    yyjson_val *volumes = at(vmi->spec, "/volumes"), *v;
    struct migratable m = {.yes = true};
    size_t i, max;

    if (bridged_pod_network(vmi)) {
        return no("InterfaceNotLiveMigratable",
                  "an interface on the pod network uses a bridge; masquerade can be moved");
    }
    if (yyjson_arr_size(at(vmi->spec, "/domain/devices/hostDevices")) > 0 ||
        yyjson_arr_size(at(vmi->spec, "/domain/devices/gpus")) > 0) {
        return no("HostDeviceNotLiveMigratable", "the VMI uses devices of its host");
    }
    yyjson_arr_foreach(volumes, i, max, v)
    {
        bool claim = yyjson_obj_get(v, "persistentVolumeClaim") || yyjson_obj_get(v, "dataVolume");
        bool host_disk = yyjson_obj_get(v, "hostDisk");

        if (claim && is_copied(vmi, api_json_str(v, "/name"))) {
            m.block = true;
            continue;
        }
        if (claim && !shared_claim(vmi, api_json_str(v, "/name"))) {
            return no("DisksNotLiveMigratable", "a claim is not ReadWriteMany");
        }
        if (host_disk && !api_json_bool(v, "/hostDisk/shared", false)) {
            return no("DisksNotLiveMigratable", "a host disk is not shared");
        }
        m.block = m.block || !(claim || host_disk);
    }
    return m;
}
