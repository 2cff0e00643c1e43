#include "machine.h"

#include <stddef.h>

enum {
    COM1 = 0x3f8,
    PIC1 = 0x20,
    PIC2 = 0xa0,
    PIT = 0x40,
    PIT_CLOCK = 1193182,
    /* Both of QEMU's PC machines have SeaBIOS put the ACPI power management block here. */
    PM1_STATUS = 0x600,
    PM1_ENABLE = 0x602,
    PM1_CONTROL = 0x604,
    PM1_POWER_BUTTON = 0x100,
    PM1_SLEEP = 0x2000, /* enter the sleep state of type 0: soft off */
};

volatile uint32_t machine_ticks;

void isr_tick(void);
void isr_spurious(void);
void isr_exception(void);
void machine_exception(void);
void *memset(void *to, int value, size_t n);

void machine_out8(uint16_t port, uint8_t v)
{
    __asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

void machine_out16(uint16_t port, uint16_t v)
{
    __asm__ volatile("outw %0, %1" : : "a"(v), "Nd"(port));
}

void machine_out32(uint16_t port, uint32_t v)
{
    __asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(port));
}

uint32_t machine_in32(uint16_t port)
{
    uint32_t v;

    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static uint8_t in8(uint16_t port)
{
    uint8_t v;

    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

uint16_t machine_in16(uint16_t port)
{
    uint16_t v;

    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

/* The compiler may call it. */
void *memset(void *to, int value, size_t n)
{
    void *p = to;

    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(value) : "memory");
    return to;
}

/* ---- serial line ------------------------------------------------------------------------------
 */

static void serial_init(void)
{
    machine_out8(COM1 + 1, 0);    /* no interrupts */
    machine_out8(COM1 + 3, 0x80); /* divisor */
    machine_out8(COM1, 1);
    machine_out8(COM1 + 1, 0);
    machine_out8(COM1 + 3, 3);    /* 8 bits, no parity, one stop bit */
    machine_out8(COM1 + 2, 0xc7); /* FIFO */
    machine_out8(COM1 + 4, 3);
}

static void put_char(char c)
{
    while (!(in8(COM1 + 5) & 0x20)) {
    }
    machine_out8(COM1, (uint8_t)c);
}

void machine_puts(const char *s)
{
    for (; *s; s++) {
        if (*s == '\n') {
            put_char('\r');
        }
        put_char(*s);
    }
}

void machine_put_field(const char *name, uint32_t value)
{
    char digits[11];
    int i = 10;

    digits[10] = '\0';
    do {
        digits[--i] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    machine_puts(name);
    machine_puts(digits + i);
}

int machine_getc(void)
{
    return in8(COM1 + 5) & 1 ? in8(COM1) : -1;
}

/* ---- interrupts -------------------------------------------------------------------------------
 */

struct table_register {
    uint16_t limit;
    uint32_t base;
} __attribute__((packed));

struct gate {
    uint16_t offset_low, selector;
    uint8_t zero, type;
    uint16_t offset_high;
} __attribute__((packed));

static uint64_t gdt[] = {0, 0x00cf9a000000ffffULL, 0x00cf92000000ffffULL}; /* flat code, data */
static struct gate idt[48];

static void set_gate(int n, void (*handler)(void))
{
    uint32_t at = (uint32_t)handler;

    idt[n] = (struct gate){.offset_low = (uint16_t)at,
                           .selector = 8,
                           .type = 0x8e,
                           .offset_high = (uint16_t)(at >> 16)};
}

static void tables_init(void)
{
    struct table_register g = {sizeof(gdt) - 1, (uint32_t)gdt};
    struct table_register i = {sizeof(idt) - 1, (uint32_t)idt};

    __asm__ volatile("lgdt %0\n ljmp $8, $1f\n"
                     "1: mov $16, %%eax\n mov %%eax, %%ds\n mov %%eax, %%es\n"
                     "mov %%eax, %%ss\n mov %%eax, %%fs\n mov %%eax, %%gs"
                     :
                     : "m"(g)
                     : "eax");
    for (int n = 0; n < 32; n++) {
        set_gate(n, isr_exception);
    }
    for (int n = 32; n < 48; n++) {
        set_gate(n, isr_spurious);
    }
    set_gate(32, isr_tick);
    __asm__ volatile("lidt %0" : : "m"(i));
}

static void timer_init(void)
{
    static const uint8_t setup[][2] = {
        {PIC1, 0x11},     {PIC2, 0x11},     {PIC1 + 1, 32}, {PIC2 + 1, 40},
        {PIC1 + 1, 4},    {PIC2 + 1, 2},    {PIC1 + 1, 1},  {PIC2 + 1, 1},
        {PIC1 + 1, 0xfe}, {PIC2 + 1, 0xff}, /* IRQ 0 only */
    };
    uint32_t divisor = PIT_CLOCK / MACHINE_HZ;

    for (size_t i = 0; i < sizeof(setup) / sizeof(setup[0]); i++) {
        machine_out8(setup[i][0], setup[i][1]);
    }
    machine_out8(PIT + 3, 0x34);
    machine_out8(PIT, divisor & 255);
    machine_out8(PIT, (uint8_t)(divisor >> 8));
}

void machine_exception(void)
{
    machine_puts("GUEST-EXCEPTION\n");
}

void machine_init(void)
{
    tables_init();
    timer_init();
    serial_init();
    machine_out16(PM1_ENABLE, PM1_POWER_BUTTON); /* else QEMU does not even set the status bit */
}

void machine_interrupts_on(void)
{
    __asm__ volatile("sti" : : : "memory");
}

void machine_wait_tick(uint32_t seen)
{
    /* `sti; hlt` back to back: an interrupt between the look and the sleep still wakes us. */
    __asm__ volatile("cli" : : : "memory");
    if (machine_ticks == seen) {
        __asm__ volatile("sti; hlt" : : : "memory");
    } else {
        __asm__ volatile("sti" : : : "memory");
    }
}

/* ---- power ------------------------------------------------------------------------------------
 */

bool machine_power_button(void)
{
    if (!(machine_in16(PM1_STATUS) & PM1_POWER_BUTTON)) {
        return false;
    }
    machine_out16(PM1_STATUS, PM1_POWER_BUTTON); /* writing the bit clears it */
    return true;
}

void machine_power_off(void)
{
    machine_out16(PM1_CONTROL, PM1_SLEEP);
}

void machine_reset(void)
{
    machine_out8(0x64, 0xfe); /* the keyboard controller's line to the CPU */
}
