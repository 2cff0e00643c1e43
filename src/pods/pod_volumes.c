#include "pods/pod_volumes.h"

#include <string.h>

#include "api/names.h"
#include "api/object.h"
#include "base/count.h"
#include "base/str.h"
#include "pods/pod_files.h"

#define PRIVATE "/var/run/kubevirt-private/"
#define VFIO "/dev/vfio/"

#define EMPTY_BYTES (INT64_C(1) << 30)
#define EMPTY_BYTES_MAX (INT64_C(1) << 50)

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

/* "/dev/vfio/12" */
static bool is_vfio_group(const char *path)
{
    size_t dir = strlen(VFIO), n = path && ferry_str_starts(path, VFIO) ? strlen(path + dir) : 0;

    return n >= 1 && n <= 9 && strspn(path + dir, "0123456789") == n;
}

static int read_host_path(const yyjson_val *v, struct pod_volume *ret, struct ferry_error *err)
{
    static const char *const types[] = {"", "Directory", "DirectoryOrCreate", "BlockDevice"};
    const char *type = api_json_str(v, "/type");
    bool known = !type;

    for (size_t i = 0; i < FERRY_COUNT(types) && !known; i++) {
        known = ferry_streq(type, types[i]);
    }
    ret->kind = POD_VOLUME_HOST_PATH;
    ret->source = api_json_str(v, "/path");
    ret->create = ferry_streq(type, "DirectoryOrCreate");
    if (ferry_streq(type, "CharDevice") && is_vfio_group(ret->source)) {
        ret->kind = POD_VOLUME_VFIO;
        return 0;
    }
    if (!is_plain_path(ret->source)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': hostPath.path: must be absolute, without '..'", ret->name);
    }
    return known ? 0
                 : ferry_fail(err, FERRY_INVALID,
                              "volume '%s': hostPath.type '%s' is not supported", ret->name, type);
}

/* A ConfigMap or a Secret. Modes are not read: the files are their user's alone. */
static int read_files(const yyjson_val *v, enum pod_volume_kind kind, struct pod_volume *ret,
                      struct ferry_error *err)
{
    const char *named = kind == POD_VOLUME_SECRET ? "secret.secretName" : "configMap.name";
    yyjson_val *items = field(v, "items");
    yyjson_arr_iter it = yyjson_arr_iter_with(items);

    ret->kind = kind;
    ret->source = api_json_str(v, kind == POD_VOLUME_SECRET ? "/secretName" : "/name");
    ret->optional = api_json_bool(v, "/optional", false);
    ret->items = yyjson_arr_size(items) > 0 ? items : NULL;
    ret->readonly = true;
    if (!api_name_is_dns_subdomain(ret->source)) {
        return ferry_fail(err, FERRY_INVALID, "volume '%s': %s: must name an object", ret->name,
                          named);
    }
    for (yyjson_val *item; (item = yyjson_arr_iter_next(&it));) {
        if (!pod_files_is_name(api_json_str(item, "/key")) ||
            !pod_files_is_name(api_json_str(item, "/path"))) {
            return ferry_fail(err, FERRY_INVALID,
                              "volume '%s': items: key and path must be names of files, without "
                              "directories",
                              ret->name);
        }
    }
    return 0;
}

/* A size that nobody named is no reason to have none. */
static int read_size(const yyjson_val *empty, struct pod_volume *ret, struct ferry_error *err)
{
    const yyjson_val *limit = field(empty, "sizeLimit");

    ret->bytes = EMPTY_BYTES;
    if (limit && api_quantity_val(limit, 1, &ret->bytes, err) < 0) {
        return ferry_wrap(err, "volume '%s': emptyDir.sizeLimit", ret->name);
    }
    return ret->bytes > 0 && ret->bytes <= EMPTY_BYTES_MAX
               ? 0
               : ferry_fail(err, FERRY_INVALID,
                            "volume '%s': emptyDir.sizeLimit: must be from 1 to 1Pi", ret->name);
}

static int read_source(const yyjson_val *v, struct pod_volume *ret, struct ferry_error *err)
{
    const yyjson_val *empty = field(v, "emptyDir"), *claim = field(v, "persistentVolumeClaim");
    const yyjson_val *host = field(v, "hostPath");
    const yyjson_val *map = field(v, "configMap"), *secret = field(v, "secret");

    if (empty) {
        bool huge = ferry_streq(api_json_str(empty, "/medium"), "HugePages");

        ret->kind = huge ? POD_VOLUME_HUGEPAGES : POD_VOLUME_EMPTY;
        return read_size(empty, ret, err);
    }
    if (host) {
        return read_host_path(host, ret, err);
    }
    if (map || secret) {
        return read_files(map ? map : secret, map ? POD_VOLUME_CONFIG_MAP : POD_VOLUME_SECRET, ret,
                          err);
    }
    ret->kind = POD_VOLUME_CLAIM;
    ret->source = api_json_str(claim, "/claimName");
    if (!claim || ferry_str_empty(ret->source)) {
        return ferry_fail(err, FERRY_INVALID,
                          "volume '%s': only emptyDir, hostPath, persistentVolumeClaim, "
                          "configMap and secret are supported",
                          ret->name);
    }
    ret->readonly = api_json_bool(claim, "/readOnly", false);
    return 0;
}

/* Where a volume must be mounted; owned by the caller. */
static char *place_of(const struct pod_volume *v)
{
    switch (v->kind) {
    case POD_VOLUME_HUGEPAGES:
        return ferry_strdup("/dev/hugepages");
    case POD_VOLUME_CONFIG_MAP:
        return ferry_asprintf(PRIVATE "config-map/%s", v->name);
    case POD_VOLUME_SECRET:
        return ferry_asprintf(PRIVATE "secret/%s", v->name);
    case POD_VOLUME_VFIO:
        return ferry_strdup(v->source);
    case POD_VOLUME_EMPTY:
    case POD_VOLUME_HOST_PATH:
    case POD_VOLUME_CLAIM:
        break;
    }
    return ferry_asprintf(PRIVATE "vmi-disks/%s", v->name);
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
    ferry_cleanup_free char *want = place_of(&volume);
    if (!ferry_streq(path, want)) {
        return ferry_fail(err, FERRY_INVALID, "%s: volume '%s' can only be at %s", where, name,
                          want);
    }
    if (!ferry_str_empty(api_json_str(mount, "/subPath")) ||
        !ferry_str_empty(api_json_str(mount, "/subPathExpr"))) {
        return ferry_fail(err, FERRY_INVALID, "%s: volume '%s': subPath is not supported", where,
                          name);
    }
    if (device && volume.kind != POD_VOLUME_CLAIM && volume.kind != POD_VOLUME_HOST_PATH) {
        return ferry_fail(err, FERRY_INVALID, "%s: volume '%s' is not a device", where, name);
    }
    if (ret->n == POD_VOLUMES_MAX) {
        return ferry_fail(err, FERRY_INVALID, "%s: more than %d", where, POD_VOLUMES_MAX);
    }
    volume.device = volume.device || volume.kind == POD_VOLUME_VFIO;
    ret->list[ret->n++] = volume;
    return 0;
}

int64_t pod_volumes_empty_bytes(const struct pod_volumes *volumes)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < volumes->n; i++) {
        bytes += volumes->list[i].kind == POD_VOLUME_EMPTY ? volumes->list[i].bytes : 0;
    }
    return bytes;
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
