/* The VirtualMachineInstance that a VirtualMachine's template asks for. Pure. */
#pragma once

#include <stdint.h>

#include "api/instancetype/instancetype.h"

enum { VM_TEMPLATE_TAG = 17 };

/* Manifest as JSON, owned by the caller: the template, with what an instance type and a preference
 * add to it, under the VM's own name, owned by the VM. */
char *vm_render(const struct api_object *vm, const struct instancetype_pair *sizing);

/* What tells two templates apart, with the revisions of what they name; volumes left out: those can
 * change while the VM runs. The order of keys does not matter. */
const char *vm_template_tag(const struct api_object *vm, char ret[VM_TEMPLATE_TAG]);
