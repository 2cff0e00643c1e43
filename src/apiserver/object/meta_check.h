/* What may stand in the metadata of an object, as Kubernetes has it. Pure. */
#pragma once

#include "api/object.h"
#include "apiserver/message/status.h"

/* Labels, annotations, owners and finalizers. */
int meta_check(const struct api_resource *r, const struct api_meta *meta, struct status *st);
