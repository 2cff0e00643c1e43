/* One look at a running migration. Decoding libvirt's job statistics is pure. */
#pragma once

#include <libvirt/libvirt.h>

#include "api/wire/wire_launcher_status.h"

/* `job_type` is a virDomainJobType, the parameters those of virDomainGetJobStats() or of the job
 * completed event. */
void sample_decode(int job_type, virTypedParameterPtr params, int n_params,
                   struct launcher_sample *ret);
