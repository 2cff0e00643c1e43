/* The volumes of a pod: what it mounts, and from where. Pure.
 *
 * A launcher pod mounts the disks of its guest, each as directory or block device
 * /var/run/kubevirt-private/vmi-disks/NAME, ConfigMaps and Secrets as directories config-map/NAME
 * and secret/NAME beside that, VFIO groups at /dev/vfio/GROUP, and perhaps huge pages; anything
 * else is refused by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"

enum { POD_VOLUMES_MAX = 16 };

enum pod_volume_kind {
    POD_VOLUME_EMPTY,     /* lives and dies with the pod */
    POD_VOLUME_HOST_PATH, /* `source` is a path on the host */
    POD_VOLUME_CLAIM,     /* `source` names a PersistentVolumeClaim of the pod's namespace */
    POD_VOLUME_HUGEPAGES,
    POD_VOLUME_CONFIG_MAP, /* `source` names it, in the pod's namespace */
    POD_VOLUME_SECRET,
    POD_VOLUME_VFIO, /* `source` is /dev/vfio/GROUP: a group of the host's devices */
};

struct pod_volume {
    const char *name, *source; /* point into the object; source may be NULL */
    enum pod_volume_kind kind;
    int64_t bytes; /* POD_VOLUME_EMPTY: how much it may hold */
    bool create;   /* a host directory that is not there is made */
    bool device;   /* a block device, not a directory */
    bool readonly;
    bool optional;           /* a ConfigMap, Secret or key that is not there is no error */
    const yyjson_val *items; /* which keys, under which names: [{key, path}]; NULL = all */
};

struct pod_volumes {
    struct pod_volume list[POD_VOLUMES_MAX];
    size_t n;
};

/* What all those that live with the pod may hold. */
int64_t pod_volumes_empty_bytes(const struct pod_volumes *volumes);

/* Those that the container mounts; volumes that it does not mount are left out, as a kubelet does.
 * -FERRY_INVALID names what is not supported. */
int pod_volumes_read(const yyjson_val *spec, const yyjson_val *container, struct pod_volumes *ret,
                     struct ferry_error *err);
