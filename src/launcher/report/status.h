/* The answer to GET /v1/status (docs/contracts/launcher.md). Pure. */
#pragma once

#include <yyjson.h>

#include "launcher/libvirt/view.h"
#include "launcher/report/state.h"
#include "launcher/strategy/sample.h"

/* JSON text, owned by the caller. `machine` is the domain's type, "" = not known, said of one that
 * has a QEMU; `sample` is the latest of the current migration. */
char *status_json(const struct view *domain, const char *machine, const struct state_migration *m,
                  const struct sample *sample);

/* The same's "migration" member; NULL when there was none. */
yyjson_mut_val *status_migration(yyjson_mut_doc *doc, const struct state_migration *m,
                                 const struct sample *sample);
