#include "launcher/domain/disk_image.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/* qcow2: magic, version, backing file (8 + 4), cluster bits, then the size, all big-endian. */
enum { QCOW2_HEADER = 32, QCOW2_BACKING_AT = 8, QCOW2_SIZE_AT = 24 };
static const unsigned char qcow2_magic[4] = {'Q', 'F', 'I', 0xfb};

static int qcow2_size(int fd, const char *path, int64_t *ret, struct ferry_error *err)
{
    unsigned char header[QCOW2_HEADER];
    uint64_t backing, size;

    if (pread(fd, header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header, qcow2_magic, sizeof(qcow2_magic)) != 0) {
        return ferry_fail(err, FERRY_INVALID, "%s: is not a qcow2 image", path);
    }
    memcpy(&backing, header + QCOW2_BACKING_AT, sizeof(backing));
    memcpy(&size, header + QCOW2_SIZE_AT, sizeof(size));
    if (backing) {
        return ferry_fail(err, FERRY_INVALID, "%s: has a backing file, which is not supported",
                          path);
    }
    if (be64toh(size) > INT64_MAX) {
        return ferry_fail(err, FERRY_INVALID, "%s: says that it is impossibly large", path);
    }
    *ret = (int64_t)be64toh(size);
    return 0;
}

/* Nothing there can only become a directory. */
static void look(const char *dir, struct disk *d)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, d->name);
    struct stat st;
    bool there = stat(path, &st) == 0;
    bool block = there && S_ISBLK(st.st_mode);

    if (d->block != d->block_there) {
        d->block = block;
    } else if (there) {
        d->block = d->block_there = block;
    }
}

int disk_image_find(const struct api_vmi *vmi, const char *dir, struct disks *ret,
                    struct ferry_error *err)
{
    int rc = disks_decode(vmi, ret, err);

    for (size_t i = 0; rc == 0 && i < ret->n; i++) {
        look(dir, &ret->list[i]);
    }
    return rc;
}

int disk_image_size(const char *path, const char *format, int64_t *ret, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return ferry_fail_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)) {
        return ferry_fail(err, FERRY_INVALID, "%s: is neither a file nor a block device", path);
    }
    *ret = S_ISBLK(st.st_mode) ? lseek(fd, 0, SEEK_END) : st.st_size;
    if (*ret < 0) {
        return ferry_fail_errno(err, errno, "measuring %s", path);
    }
    return ferry_streq(format, "qcow2") ? qcow2_size(fd, path, ret, err) : 0;
}

int disk_image_sizes(const struct disks *disks, const char *dir, bool only_copied,
                     struct disks_sizes *ret, struct ferry_error *err)
{
    *ret = (struct disks_sizes){0};
    for (size_t i = 0; i < disks->n; i++) {
        const struct disk *d = &disks->list[i];
        ferry_cleanup_free char *path = disks_path(dir, d);
        struct disks_size *size = &ret->list[ret->n];

        if (only_copied && !d->copied) {
            continue;
        }
        if (disk_image_size(path, d->format, &size->bytes, err) < 0) {
            ferry_wrap(err, "spec.volumes[%s]", d->name);
            err->cls = FERRY_INVALID;
            return -FERRY_INVALID;
        }
        snprintf(size->name, sizeof(size->name), "%s", d->name);
        ret->n++;
    }
    return 0;
}

int disk_image_copied_bytes(const struct disks *disks, const char *dir, int64_t *ret,
                            struct ferry_error *err)
{
    struct disks_sizes sizes;
    int rc = disk_image_sizes(disks, dir, true, &sizes, err);

    *ret = 0;
    for (size_t i = 0; rc == 0 && i < sizes.n; i++) {
        *ret += sizes.list[i].bytes;
    }
    return rc;
}
