/* The launcher pod of a VMI. Pure: the objects in, a manifest out.
 *
 * Pod names are made from UIDs, not by chance: a controller that creates a pod again, because it
 * was killed in between or its cache lags, meets the first one instead of making a second. */
#pragma once

#include <stdint.h>

#include "api/kinds.h"

struct pod_settings {
    const char *launcher_image; /* what Kubernetes runs; the embedded engine does not look at it */
};

/* "virt-launcher-NAME-xxxxx"; owned by the caller. */
char *pod_name(const struct api_vmi *vmi, const struct api_migration *migration);

/* Memory that a launcher needs besides the guest's. */
int64_t pod_memory_overhead(const struct api_vmi *vmi);

/* Manifest as JSON, owned by the caller. With a migration it is the target pod: kept off the nodes
 * that have a pod of this VMI, and its addedNodeSelector may only narrow the choice. */
char *pod_render(const struct api_vmi *vmi, const struct api_migration *migration,
                 const struct pod_settings *settings);
