/* The guest's disks, under watch like its memory. Virtio block devices of the legacy kind on PCI
 * bus 0 (QEMU's machine `pc`), first come first served.
 *
 * The first blocks of each disk hold a pattern that depends on disk, block and generation. They are
 * rewritten one by one, generation after generation; a block is read and checked before that. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DISK_BLOCK = 4096, DISK_MAX = 4 };

/* Finds the disks and writes the pattern to the first `mib` of each; 0: leaves them alone. */
void disk_init(uint32_t mib);
uint32_t disk_count(void);
uint32_t disk_blocks(void); /* under watch, of all disks */

/* Checks and rewrites the next `n` blocks. */
void disk_dirty(uint32_t n);
uint32_t disk_bad(void); /* bad blocks met by disk_dirty() since boot */
/* Reads a block (0 to disk_blocks() - 1) and compares; `report`: says so on the serial line. */
bool disk_check(uint32_t block, bool report);
