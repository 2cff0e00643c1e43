/* What the webhook answers about a VirtualMachine or its instance: fields that cannot be had are
 * refused, those without effect are named in a warning, a new instance gets the disks that its
 * volumes lack (api/spec). As the embedded API server does by itself. Pure. */
#pragma once

#include "control/loops/review.h"

/* AdmissionReview, owned by the caller. */
char *review_machine(const struct review *r);
