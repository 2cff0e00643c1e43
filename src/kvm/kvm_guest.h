/* A guest of a few instructions, by which one sees whether hardware runs guests or something
 * pretends to: 64-bit mode with paging, a return from an interrupt, and a loop of a million turns.
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    KVM_GUEST_BYTES = 1 << 20,
    KVM_GUEST_CODE = 0x8000,
    KVM_GUEST_STACK = 0x20000,
    KVM_GUEST_PAGES = 0x1000, /* page tables */
    KVM_GUEST_GDT = 0x6000,
    KVM_GUEST_GDT_BYTES = 24,
    KVM_GUEST_CODE_SEGMENT = 0x08,
    KVM_GUEST_DATA_SEGMENT = 0x10,
};

/* What RBX has when the guest stops by itself: it went the whole way. */
#define KVM_GUEST_DONE UINT64_C(0xfe44ed900d)

/* Fills the guest's memory, KVM_GUEST_BYTES of zeroes. */
void kvm_guest_write(unsigned char *memory);
