/* Multiboot-1 header, entry point and interrupt stubs. */
#define MAGIC 0x1BADB002
#define FLAGS 0x00000003 /* page-align modules, give me the memory map */

    .section .multiboot, "a"
    .align 4
    .long MAGIC, FLAGS, -(MAGIC + FLAGS)

    .text
    .globl _start
_start:
    cli
    mov $stack_top, %esp
    push %ebx /* multiboot information */
    push %eax /* multiboot magic */
    call guest_main
1:  hlt
    jmp 1b

    .globl isr_tick
isr_tick:
    push %eax
    incl machine_ticks
    mov $0x20, %al
    outb %al, $0x20
    pop %eax
    iret

    .globl isr_spurious
isr_spurious:
    push %eax
    mov $0x20, %al
    outb %al, $0xa0
    outb %al, $0x20
    pop %eax
    iret

    .globl isr_exception
isr_exception:
    call machine_exception
1:  hlt
    jmp 1b

    .bss
    .align 16
    .skip 16384
stack_top:

    .section .note.GNU-stack, "", @progbits
