/* Questions about objects that several decisions ask. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/object.h"
#include "api/wire/wire_phase.h"

bool vmi_has_phase(const struct api_vmi *vmi, enum wire_phase phase);
/* A move was handed off and its outcome is not settled. */
bool vmi_is_migrating(const struct api_vmi *vmi);

/* The move was given up without anybody's word on where the guest is, and the target has not let go
 * of it yet: its pod may turn out to have the VM. */
bool vmi_awaits_target(const struct api_vmi *vmi);

/* Not over, not being deleted, container running. */
bool pod_is_ready(const struct api_pod *pod);

/* Since when the node is not known to be ready; 0 = it is. */
int64_t node_silent_since(const struct api_node *node);

/* The pod that has the VM: on status.nodeName, the newest if there are several; before there is a
 * node, the one that is no migration target. NULL = none. */
const struct api_object *vmi_current_pod(const struct api_vmi *vmi,
                                         const struct api_object *const *pods, size_t n);

/* KubeVirt's predicates over the phase of a migration. */
bool migration_is_running(const struct api_migration *m);     /* counts against the limits */
bool migration_target_created(const struct api_migration *m); /* Scheduling and later */
int migration_priority(const struct api_migration *m);        /* KUBE_PRIORITY_* */
/* When the phase was entered; creation time when that is not written down. */
int64_t migration_phase_since(const struct api_migration *m, enum wire_phase phase);
