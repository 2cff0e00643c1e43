/* The one word for what a VirtualMachine is doing: KubeVirt's words, in KubeVirt's order. Several
 * may be true at once; the first is what is said. */
#include "api/wire/wire_keys.h"
#include "api/wire/wire_phase.h"
#include "base/count.h"
#include "base/str.h"
#include "control/plan/facts.h"
#include "control/vm/vm_case.h"
#include "control/vm/vmi_decide.h"

/* ---- of an instance --------------------------------------------------------------------------
 */

static bool has_condition(const struct vm_case *d, const char *type, const char *reason)
{
    const struct api_condition *c = d->vmi ? api_condition_find(&d->vmi->conditions, type) : NULL;

    return c && ferry_streq(c->status, "False") && ferry_streq(c->reason, reason);
}

static bool is_terminating(const struct vm_case *d)
{
    return d->vm->meta.deleted_ms != 0;
}

static bool is_stopping(const struct vm_case *d)
{
    return d->vmi && !wire_vmi_is_over(d->vmi) && (d->vmi->meta.deleted_ms || d->action == VM_STOP);
}

static bool is_migrating(const struct vm_case *d)
{
    return d->vmi && vmi_is_migrating(d->vmi);
}

static bool is_up(const struct vm_case *d, bool paused)
{
    return d->vmi && vmi_has_phase(d->vmi, PHASE_RUNNING) &&
           api_condition_true(&d->vmi->conditions, CONDITION_PAUSED) == paused;
}

static bool is_paused(const struct vm_case *d)
{
    return is_up(d, true);
}

static bool is_running(const struct vm_case *d)
{
    return is_up(d, false);
}

static bool lacks_claim(const struct vm_case *d)
{
    return has_condition(d, CONDITION_SYNCHRONIZED, "FailedPvcNotFound");
}

static bool is_unschedulable(const struct vm_case *d)
{
    return has_condition(d, CONDITION_POD_SCHEDULED, "Unschedulable");
}

static bool fails_to_pull(const struct vm_case *d)
{
    return has_condition(d, CONDITION_SYNCHRONIZED, VMI_ERR_IMAGE_PULL);
}

static bool backs_off_to_pull(const struct vm_case *d)
{
    return has_condition(d, CONDITION_SYNCHRONIZED, VMI_IMAGE_PULL_BACK_OFF);
}

/* ---- of the VM -------------------------------------------------------------------------------
 */

/* Its strategy wants it to run, whatever keeps it from that. */
static bool is_to_run(const struct vm_case *d)
{
    const char *strategy = d->vm->run_strategy;

    if (ferry_streq(strategy, "Manual")) {
        return d->vmi ? d->action != VM_STOP : d->action == VM_START;
    }
    if (ferry_streq(strategy, "RerunOnFailure")) {
        return !(d->vmi && vmi_has_phase(d->vmi, PHASE_SUCCEEDED));
    }
    return ferry_streq(strategy, "Always") || (ferry_streq(strategy, "Once") && !d->vmi);
}

static bool waits_for_binding(const struct vm_case *d)
{
    for (size_t i = 0; is_to_run(d) && i < d->vm->machine.n_volumes; i++) {
        const struct api_claim *c =
            storage_claim(&d->view->storage, storage_claim_name(&d->vm->machine.volumes[i]));

        if (c && !ferry_streq(c->phase, "Bound")) {
            return true;
        }
    }
    return false;
}

static bool is_starting(const struct vm_case *d)
{
    return d->vmi ? vmi_has_phase(d->vmi, PHASE_NONE) || vmi_has_phase(d->vmi, PHASE_PENDING) ||
                        vmi_has_phase(d->vmi, PHASE_SCHEDULING) ||
                        vmi_has_phase(d->vmi, PHASE_SCHEDULED)
                  : d->action == VM_START;
}

/* It failed before it ever ran, and is going to be started again. */
static bool is_crash_looping(const struct vm_case *d)
{
    static const char *const strategies[] = {"Always", "RerunOnFailure", "Once"};
    bool tries = false;

    for (size_t i = 0; i < FERRY_COUNT(strategies); i++) {
        tries = tries || ferry_streq(d->vm->run_strategy, strategies[i]);
    }
    if (!tries || (d->vmi && (!wire_vmi_is_over(d->vmi) || vm_has_run(d->vmi)))) {
        return false;
    }
    return (d->vmi && vmi_has_phase(d->vmi, PHASE_FAILED)) ||
           api_json_int(d->view->vm->root, "/status/startFailure/consecutiveFailCount", 0) > 0;
}

static bool is_stopped(const struct vm_case *d)
{
    return d->vmi ? wire_vmi_is_over(d->vmi) : d->action != VM_START;
}

/* KubeVirt has Provisioning and DataVolumeError, too, of DataVolumes, and WaitingForReceiver. */
const char *vm_printable(const struct vm_case *d)
{
    static const struct {
        const char *text;
        bool (*applies)(const struct vm_case *d);
    } table[] = {
        {"Terminating", is_terminating},
        {"Stopping", is_stopping},
        {"Migrating", is_migrating},
        {"Paused", is_paused},
        {"Running", is_running},
        {"ErrorPvcNotFound", lacks_claim},
        {"ErrorUnschedulable", is_unschedulable},
        {"WaitingForVolumeBinding", waits_for_binding},
        {"ErrImagePull", fails_to_pull},
        {"ImagePullBackOff", backs_off_to_pull},
        {"Starting", is_starting},
        {"CrashLoopBackOff", is_crash_looping},
        {"Stopped", is_stopped},
    };

    for (size_t i = 0; i < FERRY_COUNT(table); i++) {
        if (table[i].applies(d)) {
            return table[i].text;
        }
    }
    return "Unknown";
}
