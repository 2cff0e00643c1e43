/* Which pods this node can run, and what they ask for. Pure.
 *
 * Ferry's sandboxes are not containers: what a pod asks for beyond the dialect of
 * docs/contracts/pods.md is refused by name, never ignored. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/error.h"
#include "pods/cgroup_plan.h"
#include "pods/pod_volumes.h"

enum { POD_ARGS_MAX = 64, POD_ARG_BYTES = 4096 };

struct pod_command {
    const char *args[POD_ARGS_MAX]; /* the launcher's; point into the object */
    size_t n;
    struct pod_volumes volumes;
    struct cgroup_limits limits;
    bool vhost_net; /* limits: devices.kubevirt.io/vhost-net */
    bool kvm;       /* limits: devices.kubevirt.io/kvm */
    int64_t user;   /* securityContext.runAsUser, one of the guests' (wire_user.h); 0 = not said */
};

/* `spec` is the pod's spec. -FERRY_INVALID names what is not supported. */
int pod_dialect_read(const yyjson_val *spec, struct pod_command *ret, struct ferry_error *err);
