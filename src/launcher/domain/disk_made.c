#include "launcher/domain/disk_made.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "launcher/domain/seed.h"

#define MARK "disk.img.made-for-a-move"

/* Where a launcher pod has its Secrets. */
#define SECRETS "/var/run/kubevirt-private/secret"

static char *mark_path(const char *dir, const char *name)
{
    return ferry_asprintf("%s/%s/" MARK, dir, name);
}

static int make_raw(const char *path, int64_t bytes, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0660);

    if (fd < 0 || ftruncate(fd, bytes) < 0) {
        return ferry_fail_errno(err, errno, "making %s", path);
    }
    return 0;
}

static int make_qcow2(const char *path, int64_t bytes, struct ferry_error *err)
{
    ferry_cleanup_free char *size = ferry_asprintf("%lld", (long long)bytes);
    const char *const argv[] = {"qemu-img", "create", "-q", "-f", "qcow2", path, size, NULL};
    int rc = ferry_run(argv, NULL, err);

    return rc < 0 ? ferry_wrap(err, "making %s", path) : 0;
}

static void remove_one(const char *dir, const char *name)
{
    ferry_cleanup_free char *image = disks_image_path(dir, name);
    ferry_cleanup_free char *mark = mark_path(dir, name);
    ferry_cleanup_free char *parent = ferry_asprintf("%s/%s", dir, name);

    unlink(image);
    unlink(mark);
    rmdir(parent); /* only when nothing else is in there */
    ferry_info("removed a disk image that was made for a move", F_STR("volume", name));
}

static int make_image(const struct disk *d, const char *image, int64_t bytes,
                      struct ferry_error *err)
{
    return ferry_streq(d->format, "qcow2") ? make_qcow2(image, bytes, err)
                                           : make_raw(image, bytes, err);
}

/* How large the VMI says that the image of a volume is to be; 0 = it is not to be made. */
static int64_t initial_bytes(const struct api_vmi *vmi, const char *name)
{
    for (size_t i = 0; i < vmi->machine.n_volumes; i++) {
        const struct api_vmi_volume *v = &vmi->machine.volumes[i];

        if (ferry_streq(v->name, name)) {
            bool own = v->source == API_VOLUME_EMPTY_DISK ||
                       (v->source == API_VOLUME_HOST_DISK &&
                        ferry_streq(v->host_disk_type, "DiskOrCreate"));

            return own ? (v->capacity_bytes + 511) / 512 * 512 : 0;
        }
    }
    return 0;
}

int disk_made_initial(const struct api_vmi *vmi, const struct disks *disks, const char *dir,
                      struct ferry_error *err)
{
    for (size_t i = 0; i < disks->n; i++) {
        const struct disk *d = &disks->list[i];
        ferry_cleanup_free char *image = disks_path(dir, d);
        int64_t bytes = initial_bytes(vmi, d->name);

        if (d->seed && seed_make(vmi, d->name, SECRETS, image, err) < 0) {
            return -(int)err->cls;
        }
        if (bytes <= 0 || access(image, F_OK) == 0) {
            continue;
        }
        int rc = make_image(d, image, bytes, err);
        if (rc < 0) {
            return ferry_wrap(err, "spec.volumes[%s]", d->name);
        }
        ferry_info("disk image made", F_STR("volume", d->name), F_INT("bytes", bytes));
    }
    return 0;
}

static int make_one(const struct disk *d, const char *dir, int64_t bytes, struct ferry_error *err)
{
    ferry_cleanup_free char *image = disks_image_path(dir, d->name);
    ferry_cleanup_free char *mark = mark_path(dir, d->name);
    ferry_cleanup_free char *parent = ferry_asprintf("%s/%s", dir, d->name);
    int rc = ferry_mkdir_p(parent, 0770, err);

    if (rc < 0 || (rc = ferry_write_file(mark, "", 0, 0600, err)) < 0) {
        return rc;
    }
    rc = make_image(d, image, bytes, err);
    if (rc < 0) {
        remove_one(dir, d->name);
        return rc;
    }
    ferry_info("disk image made for a move", F_STR("volume", d->name), F_INT("bytes", bytes));
    return 0;
}

int disk_made_create(const struct disks *disks, const char *dir, const struct disks_sizes *sizes,
                     struct disks_sizes *ret_made, struct ferry_error *err)
{
    *ret_made = (struct disks_sizes){0};
    for (size_t i = 0; i < disks->n; i++) {
        const struct disk *d = &disks->list[i];
        const struct disks_size *size = disks_size_of(sizes, d->name);
        ferry_cleanup_free char *image = disks_path(dir, d);

        if (!d->copied || d->block || !size || access(image, F_OK) == 0) {
            continue;
        }
        if (size->bytes <= 0 || size->bytes % 512 != 0) {
            disk_made_undo(dir, ret_made);
            return ferry_fail(err, FERRY_INVALID, "sourceDisks[%s]: %lld bytes are no disk",
                              d->name, (long long)size->bytes);
        }
        if (make_one(d, dir, size->bytes, err) < 0) {
            disk_made_undo(dir, ret_made);
            return ferry_wrap(err, "spec.volumes[%s]", d->name);
        }
        ret_made->list[ret_made->n++] = *size;
    }
    return 0;
}

void disk_made_undo(const char *dir, const struct disks_sizes *made)
{
    for (size_t i = 0; i < made->n; i++) {
        remove_one(dir, made->list[i].name);
    }
}

void disk_made_settle(const char *dir, bool keep)
{
    DIR *d = opendir(dir);

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        ferry_cleanup_free char *mark = mark_path(dir, e->d_name);

        if (e->d_name[0] == '.' || access(mark, F_OK) < 0) {
            continue;
        }
        if (keep) {
            unlink(mark);
        } else {
            remove_one(dir, e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}
