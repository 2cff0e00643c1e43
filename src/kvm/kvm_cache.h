/* The answer of the probe (kvm_probe.h) as it is kept: for as long as kernel and CPU are the same.
 * Pure but for the file. */
#pragma once

#include "base/str.h"
#include "kvm/kvm_judge.h"

/* Whether what became of a guest is worth keeping: a guest was there and was let run. A device that
 * cannot be opened may be there tomorrow, with the same kernel and CPU. */
bool kvm_cache_is_final(const struct kvm_answer *a);

/* The text of the file, and the answer in it; false when it is of another key, or is none. `key` is
 * text of one line or several. */
char *kvm_cache_write(const char *key, const struct kvm_answer *a);
bool kvm_cache_read(const char *text, const char *key, struct kvm_answer *ret);

/* What the answer depends on: kernel, CPU (`cpu` says which it is), the device and its driver's
 * parameters. The caller's. */
char *kvm_cache_key(const char *cpu, const char *device);

/* From `path` where it is kept, else by the probe, and then kept; true when it was kept. A device
 * that is gone is no longer what it was. */
bool kvm_cache_probe(const char *path, const char *key, const char *device, struct kvm_answer *ret);
