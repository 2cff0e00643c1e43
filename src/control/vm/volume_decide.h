/* Volumes of a VirtualMachine that were exchanged while its instance runs: their content goes along
 * with a move (facts of KubeVirt's volume migration). Pure. */
#pragma once

#include "api/object.h"
#include "control/plan/plan.h"
#include "control/plan/storage.h"

struct volume_view {
    const struct api_object *vm, *vmi;  /* the VM's own instance */
    const struct storage_view *storage; /* claims that either of them names */
    bool moves_open;                    /* a migration of the VMI is not over */
};

enum volume_answer {
    VOLUMES_SAME,    /* nothing to do */
    VOLUMES_UPDATE,  /* the change begins: the VMI gets the new claims, and a move is asked for */
    VOLUMES_WAIT,    /* as soon as the move under way is over */
    VOLUMES_CANCEL,  /* all are set back: the change is called off */
    VOLUMES_DONE,    /* a move has copied them */
    VOLUMES_REFUSED, /* needs a restart; `message` says why */
};

struct volume_verdict {
    enum volume_answer answer;
    char message[256];
};

struct volume_verdict volume_judge(const struct volume_view *view);
/* What the answer comes to, added to the plan. */
void volume_decide(const struct volume_view *view, const struct volume_verdict *verdict,
                   int64_t now_ms, struct plan *plan);
