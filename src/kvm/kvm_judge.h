/* Whether a host's KVM runs guests, from what became of a tiny one. A /dev/kvm proves nothing:
 * where KVM emulates each instruction, as nested hosts may, guests are slower than QEMU makes them
 * without it, or do not run at all. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kvm_stage {
    KVM_STAGE_OPEN,    /* opening the device */
    KVM_STAGE_VERSION, /* asking for the version of its interface */
    KVM_STAGE_MAKE,    /* making the guest: its memory, its vCPU, its registers */
    KVM_STAGE_RUN,     /* letting it run */
    KVM_STAGE_STOPPED, /* it stopped by itself */
    KVM_STAGE_COUNT
};

struct kvm_answer {
    enum kvm_stage stage; /* the last one that was tried */
    int errnum;           /* of what failed in it; 0 = nothing did. ETIME: it ran for too long */
    int version;
    unsigned exit_reason; /* KVM_STAGE_STOPPED: as KVM has it */
    uint64_t rbx;         /* likewise: what the guest says of itself */
    int64_t took_ns;      /* likewise */
};

/* A million turns of an empty loop take hardware a millisecond. */
enum { KVM_MOST_MS = 50 };

enum { KVM_WHY_BYTES = 256 };
/* Writes one line of why, also for a yes. */
bool kvm_judge(const struct kvm_answer *a, const char *device, char ret_why[KVM_WHY_BYTES]);
