/* Images that a target makes for a move, and removes when the move fails. Any thread.
 *
 * Beside such an image lies a file that says so, written before the image and removed when the move
 * has succeeded: a launcher that was restarted meanwhile still knows what it may remove. An image
 * that was there before is never touched. */
#pragma once

#include "launcher/domain/disks.h"

/* Makes the images that the VMI itself says how to make, where they are missing: empty disks, and
 * host disks of type DiskOrCreate, as large as their capacity; the seeds of cloud-init. They stay
 * with their volume. */
int disk_made_initial(const struct api_vmi *vmi, const struct disks *disks, const char *dir,
                      struct ferry_error *err);
/* Makes what is missing of the copied disks, as large as `sizes` says (a disk that is not in there
 * is left alone). `*ret_made` says which were made now. */
int disk_made_create(const struct disks *disks, const char *dir, const struct disks_sizes *sizes,
                     struct disks_sizes *ret_made, struct ferry_error *err);
/* Removes these. */
void disk_made_undo(const char *dir, const struct disks_sizes *made);
/* The move is over: all that were ever made here stay, or go. */
void disk_made_settle(const char *dir, bool keep);
