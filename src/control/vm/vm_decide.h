/* What to do about one VirtualMachine: start or stop its instance as the run strategy and the
 * requests in its status say, and say in the status what there is. KubeVirt's rules. Pure. */
#pragma once

#include "api/instancetype/matcher.h"
#include "api/object.h"
#include "control/plan/plan.h"
#include "control/plan/storage.h"

/* The instance type or the preference of a VM, each NULL where it is not there. */
struct vm_named {
    const struct api_object *object; /* what the VM names, as long as there is no revision of it */
    /* The revision that the VM or its status names; else the one that a copy of `object` would be.
     */
    const struct api_object *revision;
};

struct vm_view {
    const struct api_object *vm;
    const struct api_object *vmi; /* of the VM's name, whoever owns it; NULL = none */
    struct storage_view storage;  /* claims that either of them names */
    bool moves_open;              /* a migration of the VMI is not over */
    bool looked; /* `named` was read from the API; else a plan that needs it asks to
                    be confirmed */
    struct vm_named named[MATCHER_COUNT];
};

void vm_decide(const struct vm_view *view, int64_t now_ms, struct plan *ret);

/* What to write when the API refused to make the instance, with `message`. */
void vm_decide_refused(const struct vm_view *view, const char *message, int64_t now_ms,
                       struct plan *ret);
