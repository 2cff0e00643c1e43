/* "start", "stop" and "restart" of a VirtualMachine: what each leaves in the object for the
 * controller. KubeVirt's rules. Pure. */
#pragma once

#include <yyjson.h>

#include "apiserver/message/status.h"

/* True for a verb that is one of the three. */
bool power_is_verb(const char *verb);
/* Changes the VM's document; -1 with the reason in `st` when the VM's run strategy or state does
 * not allow it. `vmi` is the instance of its name, or NULL. */
int power_request(const char *verb, const char *name, yyjson_mut_doc *vm, const yyjson_val *vmi,
                  struct status *st);
