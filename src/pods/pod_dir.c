#include "pods/pod_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "pods/pod_netns.h"

#define MIB (INT64_C(1) << 20)
#define DISKS "disks"
/* Where the output goes; `log` leads there. */
#define OUT "out"

enum {
    /* Sockets take no blocks. */
    SOCKETS_MIB = 1,
    CONSOLE_MIB = 8, /* several times what is kept of the log (log_trim.h) */
    OUT_MIB = 8,
    STATE_MIB = 32, /* flight records */
    HOME_MIB = 128, /* capability caches, firmware variables, libvirt's status, QEMU's own log */
    FEW_INODES = 256,
    INODES = 4096,
};

enum pod_dir_owner { OF_ROOT, OF_GUEST, OF_BOTH /* the guest's user, the relay's group, setgid */ };

struct part {
    const char *name;
    enum pod_dir_owner owner;
    mode_t mode;
    int mib, inodes; /* of a file system of its own; 0 = none */
};

static const struct part parts[] = {
    {"", OF_ROOT, 0711, 0, 0},
    {"m", OF_BOTH, 02770, SOCKETS_MIB, FEW_INODES},
    {"libvirt", OF_BOTH, 02770, SOCKETS_MIB, FEW_INODES},
    {"console", OF_BOTH, 02770, CONSOLE_MIB, FEW_INODES},
    {"state", OF_GUEST, 0700, STATE_MIB, INODES},
    {"home", OF_GUEST, 0700, HOME_MIB, INODES},
    {"home/rt", OF_GUEST, 0700, 0, 0},
    {"home/config", OF_GUEST, 0700, 0, 0},
    {"home/cache", OF_GUEST, 0700, 0, 0},
    {"home/data", OF_GUEST, 0700, 0, 0},
    {"etc", OF_ROOT, 0755, 0, 0},
    {OUT, OF_ROOT, 0700, OUT_MIB, FEW_INODES},
};

/* Whether something is mounted at DIR/NAME, which is a directory of DIR's. */
static bool is_mounted(const char *dir, const char *path)
{
    struct stat up, here;

    return stat(dir, &up) == 0 && stat(path, &here) == 0 && up.st_dev != here.st_dev;
}

struct access {
    uid_t uid;
    gid_t gid;
    mode_t mode;
};

/* Owner and mode come with the mount: a setgid directory is no call of chmod, which the unit of
 * ferry-pods refuses (RestrictSUIDSGID). */
static int mount_limited(const char *dir, const char *path, int64_t bytes, int inodes,
                         const struct access *a, struct ferry_error *err)
{
    char options[128];

    if (is_mounted(dir, path)) {
        return 0; /* by an earlier attempt to start */
    }
    snprintf(options, sizeof(options), "uid=%u,gid=%u,mode=%04o,size=%" PRId64 ",nr_inodes=%d",
             (unsigned)a->uid, (unsigned)a->gid, (unsigned)a->mode, bytes, inodes);
    return mount("ferry-pod", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0
               ? ferry_fail_errno(err, errno, "mounting a file system at %s", path)
               : 0;
}

static int make_directory(const char *path, struct ferry_error *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST
               ? 0
               : ferry_fail_errno(err, errno, "making directory %s", path);
}

static int make_part(const char *dir, const struct part *p, const struct pod_dir_users *users,
                     struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, p->name);
    const struct access a = {p->owner == OF_ROOT ? 0 : users->vm_uid,
                             p->owner == OF_ROOT    ? 0
                             : p->owner == OF_GUEST ? users->vm_gid
                                                    : users->relay_gid,
                             p->mode};
    int rc = make_directory(path, err);

    if (rc < 0 || p->mib) {
        return rc < 0 ? rc : mount_limited(dir, path, p->mib * MIB, p->inodes, &a, err);
    }
    return chown(path, a.uid, a.gid) < 0 || chmod(path, a.mode) < 0
               ? ferry_fail_errno(err, errno, "giving directory %s its owner and mode", path)
               : 0;
}

/* The log is found where it always was. */
static int link_log(const char *dir, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/log", dir);

    return symlink(OUT "/log", path) == 0 || errno == EEXIST
               ? 0
               : ferry_fail_errno(err, errno, "making %s", path);
}

int pod_dir_make(const char *dir, const struct pod_dir_users *users, struct ferry_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < FERRY_COUNT(parts); i++) {
        rc = make_part(dir, &parts[i], users, err);
    }
    return rc < 0 ? rc : link_log(dir, err);
}

int64_t pod_dir_disks_bytes(const char *pods_dir, int64_t asked)
{
    struct statfs fs;

    if (statfs(pods_dir, &fs) < 0 || fs.f_type != TMPFS_MAGIC) {
        return 0;
    }
    int64_t all = (int64_t)fs.f_blocks * fs.f_bsize;
    return all > 0 && asked > all ? all : asked; /* 0 = a file system without a limit */
}

int pod_dir_make_disks(const char *dir, int64_t bytes, struct ferry_error *err)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/" DISKS, dir);
    int rc = ferry_mkdir_p(path, 0711, err);

    if (rc == 0 && bytes > 0) {
        return mount_limited(dir, path, bytes, INODES, &(struct access){.mode = 0711}, err);
    }
    if (rc == 0 && chmod(path, 0711) < 0) {
        rc = ferry_fail_errno(err, errno, "opening %s", path);
    }
    return rc;
}

/* What is in it first: whoever still reads a file of it is to see that it is gone. The directory
 * itself goes with the rest. */
static void unmount(const char *dir, const char *name)
{
    ferry_cleanup_free char *path = ferry_asprintf("%s/%s", dir, name);
    struct ferry_error err;

    if (!is_mounted(dir, path)) {
        return; /* made by an older version, or no volumes */
    }
    (void)ferry_remove_tree(path, &err);
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) {
        ferry_warn("cannot unmount a part of a pod's directory", F_STR("path", path),
                   F_INT("errno", errno));
    }
}

void pod_dir_remove(const char *dir)
{
    pod_netns_remove(dir);
    unmount(dir, DISKS);
    for (size_t i = 0; i < FERRY_COUNT(parts); i++) {
        if (parts[i].mib) {
            unmount(dir, parts[i].name);
        }
    }
}
