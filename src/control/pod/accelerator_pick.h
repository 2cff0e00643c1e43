/* Whether a guest that is about to start is run by hardware or emulated. Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "api/wire/wire_accelerator.h"

/* spec.configuration.developerConfiguration.useEmulation of the KubeVirt object decides: true is
 * emulation, false is hardware, and the guest waits for a node that has it. Where it says nothing:
 * hardware, if any schedulable node has it now. One that is not ready counts, it will be back.
 * `site` may be NULL. */
enum wire_accelerator accelerator_pick(const struct api_kubevirt *site,
                                       const struct api_object *const *nodes, size_t n);
