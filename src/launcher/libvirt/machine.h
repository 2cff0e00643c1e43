/* The machine type that the guest of this launcher has. QEMU itself is asked: libvirt has it in the
 * domain's XML, but gives that out only when no job is on the domain, and while a guest comes in
 * there is one. Any thread. */
#pragma once

#include <stdbool.h>

enum { MACHINE_SIZE = 64 };

struct machine;

/* `qmp_path`: a monitor of QEMU for single calls; copied. */
struct machine *machine_new(const char *qmp_path);
void machine_free(struct machine *m); /* takes NULL */

/* "" while it is not known; `ask`: a QEMU is there that may be asked, unless it is known already.
 * It never changes. Does not wait for long. */
void machine_get(struct machine *m, bool ask, char ret[MACHINE_SIZE]);

/* Pure. From the name of QEMU's class, "pc-q35-9.2-machine"; "" when a guest may not have such. */
void machine_of_class(const char *name, char ret[MACHINE_SIZE]);
