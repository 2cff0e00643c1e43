/* Image files of disks. Any thread. */
#pragma once

#include "launcher/domain/disks.h"

/* The disks of a VMI as they are in this pod, whose volumes are below `dir`. What is there says
 * which of its two modes an exchanged volume has here: a pod keeps its volumes, the status of its
 * VMI changes before, with and after a move. */
int disk_image_find(const struct api_vmi *vmi, const char *dir, struct disks *ret,
                    struct ferry_error *err);
/* Size of the image as the guest sees it. NOT_FOUND when there is none; INVALID when it is not what
 * `format` says. */
int disk_image_size(const char *path, const char *format, int64_t *ret, struct ferry_error *err);
/* That of all disks of a VMI below `dir`; `only_copied`: of those that a move copies. A missing
 * image is class INVALID here, with the name of its volume. */
int disk_image_sizes(const struct disks *disks, const char *dir, bool only_copied,
                     struct disks_sizes *ret, struct ferry_error *err);
/* Sum of those that a move copies. */
int disk_image_copied_bytes(const struct disks *disks, const char *dir, int64_t *ret,
                            struct ferry_error *err);
