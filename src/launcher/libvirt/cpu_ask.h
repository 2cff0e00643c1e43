/* Asks libvirt what CPUs guests can have on this host. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* The report of cpu_report.h, the caller's. libvirt's QEMU driver runs inside this process, with
 * its files below the empty directory `dir`: no libvirtd. It leaves threads behind; end the process
 * with _exit(). */
int cpu_ask(const char *emulator, bool kvm, const char *dir, char **ret_json,
            struct ferry_error *err);
