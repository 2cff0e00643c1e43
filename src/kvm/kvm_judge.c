#include "kvm/kvm_judge.h"

#include <errno.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kvm/kvm_guest.h"

static bool no(char *why, const char *device, const char *what, int errnum)
{
    snprintf(why, KVM_WHY_BYTES, "%.100s: %s: %s", device, what, strerror(errnum));
    return false;
}

static bool judge_stopped(const struct kvm_answer *a, const char *device, char *why)
{
    double ms = (double)a->took_ns / (double)FERRY_NS_PER_MS;

    if (a->exit_reason != KVM_EXIT_HLT) {
        snprintf(why, KVM_WHY_BYTES,
                 "%.100s: a guest of a few instructions ended with exit reason %u", device,
                 a->exit_reason);
        return false;
    }
    if (a->rbx != KVM_GUEST_DONE) {
        snprintf(why, KVM_WHY_BYTES, "%.100s: a guest of a few instructions stopped before its end",
                 device);
        return false;
    }
    if (a->took_ns > KVM_MOST_MS * FERRY_NS_PER_MS) {
        snprintf(why, KVM_WHY_BYTES,
                 "%.100s: a million turns of a loop took a guest %.0f ms, so no hardware ran it",
                 device, ms);
        return false;
    }
    snprintf(why, KVM_WHY_BYTES, "%.100s: a guest of a few instructions ran in %.2f ms", device,
             ms);
    return true;
}

bool kvm_judge(const struct kvm_answer *a, const char *device, char ret_why[KVM_WHY_BYTES])
{
    switch (a->stage) {
    case KVM_STAGE_OPEN:
        return no(ret_why, device, "cannot be opened", a->errnum);
    case KVM_STAGE_VERSION:
        if (a->errnum) {
            return no(ret_why, device, "is no KVM", a->errnum);
        }
        snprintf(ret_why, KVM_WHY_BYTES, "%.100s: speaks version %d of the interface, not %d",
                 device, a->version, KVM_API_VERSION);
        return false;
    case KVM_STAGE_MAKE:
        return no(ret_why, device, "makes no guest", a->errnum);
    case KVM_STAGE_RUN:
        if (a->errnum == ETIME) {
            snprintf(ret_why, KVM_WHY_BYTES,
                     "%.100s: a guest of a few instructions did not end within %d ms, so no "
                     "hardware ran it",
                     device, KVM_MOST_MS);
            return false;
        }
        return no(ret_why, device, "does not run a guest", a->errnum);
    case KVM_STAGE_STOPPED:
        return judge_stopped(a, device, ret_why);
    case KVM_STAGE_COUNT:
        break;
    }
    snprintf(ret_why, KVM_WHY_BYTES, "%.100s: not tried", device);
    return false;
}
