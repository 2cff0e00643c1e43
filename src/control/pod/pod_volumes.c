/* The volumes of a launcher pod: one per volume of the VMI that is a file or a device of its own.
 * Each shows at DISKS/NAME in the container, a block device as that file itself. The launcher makes
 * the seed of cloud-init there; Secrets that it takes are at SECRETS/NAME-udata and -ndata. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/pod/pod_parts.h"

#define DISKS "/var/run/kubevirt-private/vmi-disks/"
/* Texts of at most 1 MiB each, and the disk that is made of them, twice while it is made. */
#define SEED_LIMIT "8Mi"
#define SECRETS "/var/run/kubevirt-private/secret/"

enum { FORMAT_SHARE = 64, FORMAT_MIB = 4 };

static void render_claim(struct pod_draft *d, yyjson_mut_val *volume, const char *claim)
{
    pod_put_str(d, pod_put_obj(d, volume, "persistentVolumeClaim"), "claimName", claim);
}

/* The directory of the image; the file in it is disk.img. */
static void render_host_disk(struct pod_draft *d, yyjson_mut_val *volume, const char *path)
{
    const char *slash = strrchr(path, '/');
    ferry_cleanup_free char *dir =
        slash && slash != path ? ferry_strndup(path, (size_t)(slash - path)) : ferry_strdup("/");
    yyjson_mut_val *host = pod_put_obj(d, volume, "hostPath");

    pod_put_str(d, host, "path", dir);
    pod_put_str(d, host, "type", "DirectoryOrCreate");
}

/* The image, and what a format that describes itself adds to it. */
static void render_empty_disk(struct pod_draft *d, yyjson_mut_val *volume, int64_t capacity)
{
    yyjson_mut_val *empty = pod_put_obj(d, volume, "emptyDir");
    char limit[32];

    if (capacity > 0 && capacity < INT64_MAX / 2) {
        snprintf(limit, sizeof(limit), "%" PRId64,
                 capacity + capacity / FORMAT_SHARE + (FORMAT_MIB << 20));
        pod_put_str(d, empty, "sizeLimit", limit);
    }
}

static bool render_source(struct pod_draft *d, yyjson_mut_val *volume,
                          const struct api_vmi_volume *v)
{
    const char *claim = storage_claim_name(v);

    if (claim) {
        render_claim(d, volume, claim);
    } else if (v->source == API_VOLUME_HOST_DISK && v->path) {
        render_host_disk(d, volume, v->path);
    } else if (v->source == API_VOLUME_EMPTY_DISK) {
        render_empty_disk(d, volume, v->capacity_bytes);
    } else if (v->no_cloud) { /* what a secret becomes a part of is not to be on a disk */
        yyjson_mut_val *empty = pod_put_obj(d, volume, "emptyDir");

        pod_put_str(d, empty, "medium", "Memory");
        pod_put_str(d, empty, "sizeLimit", SEED_LIMIT);
    } else {
        return false;
    }
    return true;
}

static yyjson_mut_val *add_mount(struct pod_draft *d, yyjson_mut_val *container,
                                 const char *list_name, const char *name)
{
    yyjson_mut_val *list = yyjson_mut_obj_get(container, list_name);

    if (!list) {
        list = pod_put_arr(d, container, list_name);
    }
    yyjson_mut_val *mount = yyjson_mut_arr_add_obj(d->doc, list);
    pod_put_str(d, mount, "name", name);
    return mount;
}

static void render_secret(struct pod_draft *d, yyjson_mut_val *list, yyjson_mut_val *container,
                          const char *volume, const char *suffix, const char *secret)
{
    ferry_cleanup_free char *name = ferry_asprintf("%s-%s", volume, suffix);
    ferry_cleanup_free char *path = ferry_asprintf(SECRETS "%s", name);

    if (ferry_str_empty(secret)) {
        return;
    }
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(d->doc, list);
    pod_put_str(d, v, "name", name);
    pod_put_str(d, pod_put_obj(d, v, "secret"), "secretName", secret);
    yyjson_mut_val *mount = add_mount(d, container, "volumeMounts", name);
    pod_put_str(d, mount, "mountPath", path);
    yyjson_mut_obj_add_bool(d->doc, mount, "readOnly", true);
}

static void render_mount(struct pod_draft *d, yyjson_mut_val *container,
                         const struct api_vmi_volume *v)
{
    const char *name = storage_claim_name(v);
    const struct api_claim *claim =
        name && d->r->storage ? storage_claim(d->r->storage, name) : NULL;
    bool block = claim && storage_claim_is_block(claim);
    ferry_cleanup_free char *path = ferry_asprintf(DISKS "%s", v->name);
    yyjson_mut_val *mount =
        add_mount(d, container, block ? "volumeDevices" : "volumeMounts", v->name);

    pod_put_str(d, mount, block ? "devicePath" : "mountPath", path);
}

static void render_hugepages(struct pod_draft *d, yyjson_mut_val *list, yyjson_mut_val *container)
{
    yyjson_mut_val *volume = yyjson_mut_arr_add_obj(d->doc, list);

    pod_put_str(d, volume, "name", "hugepages");
    pod_put_str(d, pod_put_obj(d, volume, "emptyDir"), "medium", "HugePages");
    pod_put_str(d, add_mount(d, container, "volumeMounts", "hugepages"), "mountPath",
                "/dev/hugepages");
}

void pod_render_volumes(struct pod_draft *d, yyjson_mut_val *spec, yyjson_mut_val *container)
{
    yyjson_mut_val *list = yyjson_mut_arr(d->doc);

    for (size_t i = 0; i < d->machine->n_volumes; i++) {
        const struct api_vmi_volume *v = &d->machine->volumes[i];
        yyjson_mut_val *volume = yyjson_mut_obj(d->doc);

        pod_put_str(d, volume, "name", v->name ? v->name : "");
        if (v->name && render_source(d, volume, v)) {
            yyjson_mut_arr_append(list, volume);
            render_mount(d, container, v);
            render_secret(d, list, container, v->name, "udata", v->user_secret);
            render_secret(d, list, container, v->name, "ndata", v->network_secret);
        }
    }
    if (d->machine->hugepages) {
        render_hugepages(d, list, container);
    }
    if (yyjson_mut_arr_size(list) > 0) {
        yyjson_mut_obj_add_val(d->doc, spec, "volumes", list);
    }
}
