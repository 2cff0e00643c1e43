/* Tries a host's KVM with a guest of a few instructions (kvm_guest.h). */
#pragma once

#include "kvm/kvm_judge.h"

#define KVM_DEVICE "/dev/kvm"

/* Takes up to a few hundred milliseconds, of a child process of its own: a KVM that never comes
 * back keeps nobody. To be called while the process has one thread. `device` is /dev/kvm but for
 * tests. */
void kvm_probe(const char *device, struct kvm_answer *ret);
