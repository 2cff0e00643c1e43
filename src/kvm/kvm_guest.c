#include "kvm/kvm_guest.h"

#include <string.h>

enum { PRESENT_WRITABLE = 3, LARGE = 0x80 };

/* The code, for the registers that kvm_probe.c sets: RSP = KVM_GUEST_STACK. */
static const unsigned char code[] = {
    0x6a, KVM_GUEST_DATA_SEGMENT, /* push  data segment          SS  */
    0x68, 0x00,
    0x00, 0x02,
    0x00,                         /* push  KVM_GUEST_STACK       RSP */
    0x6a, 0x02,                   /* push  2                     RFLAGS */
    0x6a, KVM_GUEST_CODE_SEGMENT, /* push  code segment          CS  */
    0x48, 0x8d,
    0x05, 0x03,
    0x00, 0x00,
    0x00,       /* lea   rax, [rip + 3]: behind the iretq */
    0x50,       /* push  rax                   RIP */
    0x48, 0xcf, /* iretq */
    0xb9, 0x40,
    0x42, 0x0f,
    0x00,       /* mov   ecx, 1000000 */
    0xff, 0xc9, /* dec   ecx */
    0x75, 0xfc, /* jnz   the dec */
    0x48, 0xbb,
    0x0d, 0x90,
    0xed, 0x44,
    0xfe, 0,
    0,    0, /* mov rbx, KVM_GUEST_DONE */
    0xf4,    /* hlt */
};

static void put64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (unsigned char)(value >> (8 * i));
    }
}

void kvm_guest_write(unsigned char *memory)
{
    unsigned char *pages = memory + KVM_GUEST_PAGES;

    /* Each address is itself, by one large page. */
    put64(pages, (KVM_GUEST_PAGES + 0x1000) | PRESENT_WRITABLE);
    put64(pages + 0x1000, (KVM_GUEST_PAGES + 0x2000) | PRESENT_WRITABLE);
    put64(pages + 0x2000, PRESENT_WRITABLE | LARGE);
    put64(memory + KVM_GUEST_GDT + KVM_GUEST_CODE_SEGMENT, UINT64_C(0x00209b0000000000));
    put64(memory + KVM_GUEST_GDT + KVM_GUEST_DATA_SEGMENT, UINT64_C(0x0000930000000000));
    memcpy(memory + KVM_GUEST_CODE, code, sizeof(code));
}
