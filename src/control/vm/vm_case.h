/* What the files of vm_decide() share. Not for others. */
#pragma once

#include "api/instancetype/instancetype.h"
#include "control/vm/vm_decide.h"
#include "control/vm/volume_decide.h"

enum vm_action { VM_NOTHING, VM_START, VM_STOP, VM_SET_ALWAYS };

struct vm_case {
    const struct vm_view *view;
    const struct api_vm *vm;
    const struct api_vmi *vmi;  /* the VM's own, or NULL */
    const char *refusal;        /* why nothing can be done, or NULL */
    const char *refusal_reason; /* as one word; NULL = FailedCreate */
    struct ferry_error sizing;  /* what `refusal` points to when vm_sizing.c said it */
    size_t requests_done;       /* of stateChangeRequests, from the first */
    bool add_start;             /* a start is to follow the stop */
    bool backing_off;
    struct volume_verdict volumes;
    enum vm_action action;
    int64_t now_ms;
    struct plan *plan;
};

/* Sees to it that there is a copy of the instance type and of the preference that the VM names, and
 * that its status says which. True when that has to be done first, and is planned; else `refusal`
 * may be set. */
bool vm_keep_copies(struct vm_case *d);
/* The specs to make the instance by, from the copies. False: not known, with `refusal` set, or with
 * the plan to be confirmed. */
bool vm_sizing(struct vm_case *d, struct instancetype_pair *ret);

/* Volumes were being copied when the instance ended: which copy is good, only a person can tell. */
bool vm_needs_recovery(const struct vm_case *d);
/* The instance was Running at some time. */
bool vm_has_run(const struct api_vmi *vmi);
/* When the next start may be tried after failed ones; 0 = at once. */
int64_t vm_retry_at(const struct vm_case *d);

/* KubeVirt's status.printableStatus; static. */
const char *vm_printable(const struct vm_case *d);
/* One guarded patch of all that has changed in the status; nothing when it is as it should be. */
void vm_write_status(struct vm_case *d);
