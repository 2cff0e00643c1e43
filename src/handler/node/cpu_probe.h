/* Finds out what CPUs guests can have on this node, in the background: nothing waits for it.
 * libvirt is asked by `ferry-launcher --describe-cpu` in a sandbox that is gone when it has
 * answered; the answer is kept in a file until QEMU, libvirt, the kernel or the CPU are others. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "handler/node/node_cpu.h"

struct cpu_probe;

struct cpu_probe_config {
    const char *launcher;              /* program; borrowed, as all */
    const char *cache;                 /* file */
    bool (*is_accelerated)(void *ctx); /* whether guests that start here are run by the hardware */
    /* On the probe's thread; `cpu` stays valid until cpu_probe_free(). */
    void (*news)(void *ctx, const struct node_cpu *cpu);
    void *ctx;
};

int cpu_probe_start(const struct cpu_probe_config *cfg, struct cpu_probe **ret,
                    struct ferry_error *err);
void cpu_probe_stop(struct cpu_probe *p); /* no news from here on; takes NULL */
void cpu_probe_free(struct cpu_probe *p); /* of one that was stopped; takes NULL */

/* Which CPU this host has, as text; the caller's. */
char *cpu_probe_identity(void);
