/* What to do about one VirtualMachine: start or stop its instance as the run strategy and the
 * requests in its status say, and say in the status what there is. KubeVirt's rules. Pure. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"
#include "control/plan/storage.h"

struct vm_view {
    const struct api_object *vm;
    const struct api_object *vmi; /* of the VM's name, whoever owns it; NULL = none */
    struct storage_view storage;  /* claims that either of them names */
    bool moves_open;              /* a migration of the VMI is not over */
};

void vm_decide(const struct vm_view *view, int64_t now_ms, struct plan *ret);

/* What to write when the API refused to make the instance, with `message`. */
void vm_decide_refused(const struct vm_view *view, const char *message, int64_t now_ms,
                       struct plan *ret);
