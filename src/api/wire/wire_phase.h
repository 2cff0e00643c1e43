/* Phases of a VirtualMachineInstance, a migration and a pod: KubeVirt's and Kubernetes' words. Each
 * kind has some of them. Pure. */
#pragma once

#include <stdbool.h>

#include "api/kinds.h"

enum wire_phase {             /* in the order in which a migration passes them */
                  PHASE_NONE, /* "" or absent: nobody has looked at it yet */
                  PHASE_PENDING,
                  PHASE_SCHEDULING,
                  PHASE_SCHEDULED,
                  PHASE_PREPARING_TARGET,
                  PHASE_TARGET_READY,
                  PHASE_RUNNING,
                  PHASE_SUCCEEDED,
                  PHASE_FAILED,
                  PHASE_UNKNOWN, /* so it says, or another word */
                  PHASE_COUNT
};

const char *wire_phase_text(enum wire_phase phase); /* "" for PHASE_NONE */
enum wire_phase wire_phase_of(const char *text);    /* may be NULL */
bool wire_phase_is(const char *text, enum wire_phase phase);
/* As people read it: Pending while there is none. */
const char *wire_phase_shown(const char *text);
/* Succeeded or Failed: it stays so. */
bool wire_phase_is_over(const char *text);

bool wire_vmi_is_over(const struct api_vmi *vmi);
bool wire_migration_is_over(const struct api_migration *m);
bool wire_pod_is_over(const struct api_pod *pod);

/* UID of the VMI that the pod was made for: of the owner that controls it, which nobody but the
 * controller sets; NULL when it is no VMI's. */
const char *wire_pod_vmi(const struct api_pod *pod);
