/* Why a pod finds no node, from the words of a scheduler. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/object.h"
#include "api/wire/wire_reason.h"

/* REASON_VOLUME_NOT_READY: a volume is what is missing; REASON_NEVER_SCHEDULABLE: no node matches
 * what the pod asks of nodes, and waiting for room does not change that; else REASON_UNSCHEDULABLE:
 * nodes are short for now. Understands "0/3 nodes are available: 2 Insufficient memory, 1 node(s)
 * ...". */
enum wire_reason pending_reason(const char *message);

/* Does the pod ask for a CPU model or features that none of these nodes has, the one named `but`
 * aside? */
bool pending_lacks_cpu(const struct api_pod *pod, const struct api_object *const *nodes, size_t n,
                       const char *but);
