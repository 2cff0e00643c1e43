/* What the files of vm_decide() share. Not for others. */
#pragma once

#include "control/vm/vm_decide.h"
#include "control/vm/volume_decide.h"

enum vm_action { VM_NOTHING, VM_START, VM_STOP, VM_SET_ALWAYS };

struct vm_case {
    const struct vm_view *view;
    const struct api_vm *vm;
    const struct api_vmi *vmi; /* the VM's own, or NULL */
    const char *refusal;       /* why nothing can be done, or NULL */
    size_t requests_done;      /* of stateChangeRequests, from the first */
    bool add_start;            /* a start is to follow the stop */
    bool backing_off;
    struct volume_verdict volumes;
    enum vm_action action;
    int64_t now_ms;
    struct plan *plan;
};

/* Volumes were being copied when the instance ended: which copy is good, only a person can tell. */
bool vm_needs_recovery(const struct vm_case *d);
/* The instance was Running at some time. */
bool vm_has_run(const struct api_vmi *vmi);
/* When the next start may be tried after failed ones; 0 = at once. */
int64_t vm_retry_at(const struct vm_case *d);

/* One guarded patch of all that has changed in the status; nothing when it is as it should be. */
void vm_write_status(struct vm_case *d);
