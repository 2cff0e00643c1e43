/* What KubeVirt's webhook adds to a VirtualMachineInstance when it is made: a volume that no disk
 * and no file system shows gets a disk, on sata. It stands in the object then, so a guest that was
 * started before keeps what it has. Pure. */
#pragma once

#include <stdbool.h>
#include <yyjson.h>

/* Whether anything was added to `object`, a VMI. */
bool vmi_defaults(yyjson_mut_doc *doc, yyjson_mut_val *object);
