/* Is there another node with the CPU and the machine type that a moving VM needs? Pure. */
#pragma once

#include <stddef.h>

#include "api/kinds.h"
#include "api/wire/wire_error.h"

/* NULL when the target pod asks for neither, when a node other than the source's has what it asks
 * for, or when there is no other node at all; else which nodes lack what, and `*ret` which of the
 * two it is. The caller's. */
char *cpu_fit_trouble(const struct api_pod *target, const struct api_object *const *nodes, size_t n,
                      const char *source_node, enum wire_lack *ret);
