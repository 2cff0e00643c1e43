/* The machine below the guest: ports, serial line, timer interrupt, power. One CPU, no paging. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MACHINE_HZ = 100 };

/* Timer interrupts since boot. */
extern volatile uint32_t machine_ticks;

/* Descriptor tables, interrupt controller, timer, serial line, power button. Interrupts are off
 * until machine_interrupts_on(). */
void machine_init(void);
void machine_interrupts_on(void);
/* Sleeps until `machine_ticks` differs from `seen`. */
void machine_wait_tick(uint32_t seen);

void machine_puts(const char *s);
void machine_put_field(const char *name, uint32_t value); /* name, then the number */
int machine_getc(void);                                   /* -1 when nothing came */

void machine_out8(uint16_t port, uint8_t v);
void machine_out16(uint16_t port, uint16_t v);
void machine_out32(uint16_t port, uint32_t v);
uint16_t machine_in16(uint16_t port);
uint32_t machine_in32(uint16_t port);

bool machine_power_button(void);
void machine_power_off(void);
void machine_reset(void); /* and boots anew */
