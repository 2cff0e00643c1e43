/* The status of a pod as kubelet writes it. Pure. */
#pragma once

#include <stdint.h>

#include "api/object.h"
#include "pods/pod_decide.h"

/* JSON patch that makes `pod` say what `report` says; NULL when it says so already. Guarded by the
 * pod's UID. Conditions of other writers stay. `host_ip` may be NULL. */
struct api_patch *pod_status_patch(const struct api_object *pod, const struct pod_report *report,
                                   const char *host_ip, int64_t now_ms);
