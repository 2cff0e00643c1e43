/* What is told of this launcher (wire_launcher_status.h), from what it knows. Pure. */
#pragma once

#include "api/wire/wire_launcher_status.h"
#include "launcher/libvirt/view.h"
#include "launcher/report/state.h"

/* The answer to GET /v1/status; the caller's. `machine` is the domain's type, "" = not known, said
 * of one that has a QEMU; `sample` is the latest of the current migration. */
char *status_json(const struct view *domain, const char *machine, const struct state_values *v,
                  const struct launcher_sample *sample);

/* The migration in it. */
void status_of_migration(const struct state_migration *m, const struct launcher_sample *sample,
                         struct launcher_migration *ret);
