/* Disks of a VMI: which there are, where their images lie, and which of them a move must copy.
 * Pure.
 *
 * A disk's image is the file DIR/VOLUME/disk.img in the pod, as KubeVirt has it for host disks and
 * for claims with a file system; that of a claim of volumeMode Block is the device DIR/VOLUME. It
 * is raw unless the VMI's annotation ferry.io/qcow2 names the volume (names separated by commas):
 * an image is never probed, because its content is the guest's.
 *
 * Copied are host disks that are not shared, empty disks, and every volume that
 * status.migratedVolumes names; claims are taken for shared otherwise. Read-only ones are not
 * copied unless they are named there; CD-ROMs and the seeds of cloud-init never: those are always
 * read-only, and a target makes the same anew.
 *
 * A volume that is named there may be a file system on one side and a block device on the other. */
#pragma once

#include "api/kinds.h"
#include "api/spec/vmi_rules.h"
#include "base/error.h"

enum { DISKS_MAX = VMI_DISKS_MAX, DISKS_NAME_SIZE = 64 };

struct disk {
    char name[DISKS_NAME_SIZE];       /* of the disk and of its volume */
    char dev[8];                      /* vda, sda, ... */
    const char *bus, *format, *cache; /* static */
    const char *io;                   /* static; NULL = QEMU's choice */
    int64_t boot_order;               /* 0 = none */
    bool cdrom, readonly, copied;
    bool seed;        /* made by whoever starts or takes the guest (seed.h) */
    bool block;       /* the volume is a device, not a directory with an image */
    bool block_there; /* so it is where a move brings it */
};

struct disks {
    struct disk list[DISKS_MAX];
    size_t n;
};

/* As the VMI's status has it: `block` is the mode that an exchanged volume had first. The pod of a
 * disk knows better (disk_image_find()). */
int disks_decode(const struct api_vmi *vmi, struct disks *ret, struct ferry_error *err);
/* INVALID unless the volumes of this pod have the modes that they are to have at the destination.
 */
int disks_check_arrival(const struct disks *disks, struct ferry_error *err);
/* Path of the disk's image or device; owned by the caller. */
char *disks_path(const char *dir, const struct disk *d);
/* Path of the image of volume `name`; owned by the caller. */
char *disks_image_path(const char *dir, const char *name);

/* How large an image is for the guest. */
struct disks_size {
    char name[DISKS_NAME_SIZE];
    int64_t bytes;
};
struct disks_sizes {
    struct disks_size list[DISKS_MAX];
    size_t n;
};
const struct disks_size *disks_size_of(const struct disks_sizes *sizes, const char *name);

/* What differs at the destination. */
struct disks_edit {
    const struct disk *disk;
    int64_t slice_bytes; /* only so much of the image is used, so it may be larger; 0 = all */
};
/* Changes these disks of a domain XML to what they are at the destination: a file or a device below
 * `dir`, and a slice unless there is one. `*ret` is owned by the caller. */
int disks_edit_xml(const char *xml, const char *dir, const struct disks_edit *edits, size_t n,
                   char **ret, struct ferry_error *err);
