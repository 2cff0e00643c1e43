#include "pods/pod_volumes.h"

#include <string.h>

#include "api/names.h"
#include "api/object.h"
#include "base/str.h"

#define DISKS "/var/run/kubevirt-private/vmi-disks/"

static yyjson_val *field(const yyjson_val *v, const char *name)
{
    return yyjson_obj_get((yyjson_val *)(uintptr_t)v, name);
}

static yyjson_val *find_volume(const yyjson_val *spec, const char *name)
{
    yyjson_arr_iter it = yyjson_arr_iter_with(field(spec, "volumes"));

    for (yyjson_val *v; (v = yyjson_arr_iter_next(&it));) {
        if (ferry_streq(yyjson_get_str(field(v, "name")), name)) {
            return v;
        }
    }
    return NULL;
}

/* No "..", so that a path stays below the node's root. */
static bool is_plain_path(const char *path)
{
    return path && *path == '/' && !strstr(path, "/../") && !ferry_str_ends(path, "/..");
}

static int read_host_path(const yyjson_val *v, struct pod_volume *ret, struct ferry_error *err)
{
    static const char *const types[] = {"", "Directory", "DirectoryOrCreate", "BlockDevice"};
    const char *type = api_json_str(v, "/type");
    bool known = !type;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !known; i++) {
        known = ferry_streq(type, types[i]);
    }
    ret->kind = POD_VOLUME_HOST_PATH;
    ret->source = api_json_str(v, "/path");
    ret->create = ferry_streq(type, "DirectoryOrCreate");
    if (!is_plain_path(ret->source)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': hostPath.path: must be absolute, without '..'", ret->name);
    }
    return known ? 0
                 : ferry_fail(err, FERRY_INVALID,
                              "volume '%s': hostPath.type '%s' is not supported", ret->name, type);
}

static int read_source(const yyjson_val *v, struct pod_volume *ret, struct ferry_error *err)
{
    const yyjson_val *empty = field(v, "emptyDir"), *claim = field(v, "persistentVolumeClaim");
    const yyjson_val *host = field(v, "hostPath");

    if (empty) {
        bool huge = ferry_streq(api_json_str(empty, "/medium"), "HugePages");

        ret->kind = huge ? POD_VOLUME_HUGEPAGES : POD_VOLUME_EMPTY;
        return 0;
    }
    if (host) {
        return read_host_path(host, ret, err);
    }
    ret->kind = POD_VOLUME_CLAIM;
    ret->source = api_json_str(claim, "/claimName");
    if (!claim || ferry_str_empty(ret->source)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': only emptyDir, hostPath and persistentVolumeClaim are "
                          "supported",
                          ret->name);
    }
    ret->readonly = api_json_bool(claim, "/readOnly", false);
    return 0;
}

static int read_mount(const yyjson_val *spec, const yyjson_val *mount, bool device,
                      struct pod_volumes *ret, struct ferry_error *err)
{
    const char *where = device ? "volumeDevices" : "volumeMounts";
    const char *name = api_json_str(mount, "/name");
    const char *path = api_json_str(mount, device ? "/devicePath" : "/mountPath");
    const yyjson_val *v = name ? find_volume(spec, name) : NULL;
    struct pod_volume volume = {.name = name, .device = device};

    if (!v || !api_name_is_dns_label(name)) {
        return ferry_fail(err, FERRY_INVALID, "%s: there is no volume '%.100s'", where,
                          name ? name : "");
    }
    int rc = read_source(v, &volume, err);
    if (rc < 0) {
        return rc;
    }
    volume.readonly = volume.readonly || api_json_bool(mount, "/readOnly", false);
    ferry_cleanup_free char *disk = ferry_asprintf(DISKS "%s", name);
    const char *want = volume.kind == POD_VOLUME_HUGEPAGES ? "/dev/hugepages" : disk;
    if (!ferry_streq(path, want)) {
        return ferry_fail(err, FERRY_INVALID, "%s: volume '%s' can only be at %s", where, name,
                          want);
    }
    if (device && volume.kind != POD_VOLUME_CLAIM && volume.kind != POD_VOLUME_HOST_PATH) {
        return ferry_fail(err, FERRY_INVALID, "%s: volume '%s' is not a device", where, name);
    }
    if (ret->n == POD_VOLUMES_MAX) {
        return ferry_fail(err, FERRY_INVALID, "%s: more than %d", where, POD_VOLUMES_MAX);
    }
    ret->list[ret->n++] = volume;
    return 0;
}

int pod_volumes_read(const yyjson_val *spec, const yyjson_val *container, struct pod_volumes *ret,
                     struct ferry_error *err)
{
    static const char *const lists[] = {"volumeMounts", "volumeDevices"};

    *ret = (struct pod_volumes){0};
    for (size_t i = 0; i < 2; i++) {
        yyjson_val *list = field(container, lists[i]);
        yyjson_arr_iter it = yyjson_arr_iter_with(list);

        if (list && !yyjson_is_null(list) && !yyjson_is_arr(list)) {
            return ferry_fail(err, FERRY_INVALID, "spec.containers[0].%s: must be a list",
                              lists[i]);
        }
        for (yyjson_val *m; (m = yyjson_arr_iter_next(&it));) {
            int rc = read_mount(spec, m, i == 1, ret, err);

            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}
