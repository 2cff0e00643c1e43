/* The launcher pod of a VMI. Pure: the objects in, a manifest out.
 *
 * Pod names are made from UIDs, not by chance: a controller that creates a pod again, because it
 * was killed in between or its cache lags, meets the first one instead of making a second. */
#pragma once

#include <stdint.h>

#include "api/kinds.h"
#include "api/wire/wire_accelerator.h"
#include "control/plan/storage.h"

struct pod_settings {
    const char *launcher_image; /* what Kubernetes runs; the embedded engine does not look at it */
};

struct pod_request {
    const struct api_vmi *vmi;
    const struct pod_settings *settings;
    const struct storage_view *storage; /* or NULL */
    const char *machine_type;           /* chosen just now; NULL = what the VMI's status has */
    enum wire_accelerator accelerator;  /* chosen just now; none = what the VMI's annotation has */
    int64_t user;                       /* chosen just now; 0 = what the VMI's status has */
    /* Of a target pod, else NULL. */
    const struct api_migration *migration;
    const struct api_pod *source_pod;
    const struct api_node *source_node; /* may be NULL */
};

/* "virt-launcher-NAME-xxxxx"; owned by the caller. */
char *pod_name(const struct api_vmi *vmi, const struct api_migration *migration);

/* Memory that a launcher needs besides the guest's. */
int64_t pod_memory_overhead(const struct api_vmi *vmi);

/* Manifest as JSON, owned by the caller. A target pod is kept off the nodes that have a pod of this
 * VMI, asks for a CPU like the source's and the guest's machine type, and the migration's
 * addedNodeSelector may only narrow. */
char *pod_render(const struct pod_request *request);

/* A VM with CPU model host-model can only go where its present CPU is known; false with why, as a
 * static text, when that is not known. */
bool pod_target_cpu_is_known(const struct pod_request *request, const char **ret_why);
