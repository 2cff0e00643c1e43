#include "pods/cache.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/count.h"
#include "base/fd.h"
#include "base/str.h"

#define IN_HOME "cache/libvirt/qemu/cache/capabilities"

static const off_t FILE_MAX = 4 << 20;
enum { FILES_MAX = 16 };

static void closedirp(DIR **d)
{
    if (*d) {
        closedir(*d);
    }
}

/* libvirt names a file after the SHA-256 of the emulator's path. */
static bool is_cache_name(const char *name)
{
    size_t n = 0;

    while (isxdigit((unsigned char)name[n])) {
        n++;
    }
    return n == 64 && strcmp(name + n, ".xml") == 0;
}

bool cache_fresh(const char *node_dir)
{
    static const char *const programs[] = {"/usr/bin/qemu-system-x86_64", "/usr/sbin/libvirtd"};
    ferry_cleanup_free char *stamp = ferry_asprintf("%s/capabilities/.complete", node_dir);
    struct stat cache, program;

    if (stat(stamp, &cache) < 0) {
        return false;
    }
    for (size_t i = 0; i < FERRY_COUNT(programs); i++) {
        /* ctime: a package installs files with the mtime of their build. */
        if (stat(programs[i], &program) == 0 && program.st_ctime >= cache.st_mtime) {
            return false;
        }
    }
    return true;
}

/* Reads a plain file of `dir` that may belong to somebody hostile. */
static int read_at(int dir, const char *name, struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return ferry_fail_errno(err, errno, "reading %s", name);
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
        return ferry_fail(err, FERRY_PEER, "%s: not a plain file of a sane size", name);
    }
    ferry_buf_reserve(ret, (size_t)st.st_size + 1);
    for (ssize_t n; ret->len < (size_t)st.st_size;) {
        n = read(fd, ret->data + ret->len, (size_t)st.st_size - ret->len);
        if (n <= 0) {
            return ferry_fail_errno(err, n < 0 ? errno : EIO, "reading %s", name);
        }
        ret->len += (size_t)n;
    }
    return 0;
}

/* Opens a directory below `top` without following a link anywhere. */
static int open_below(const char *top, const char *path, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ferry_cleanup_free char *parts = ferry_strdup(path);
    char *save = NULL;

    for (char *p = strtok_r(parts, "/", &save); p && fd >= 0; p = strtok_r(NULL, "/", &save)) {
        int next = openat(fd, p, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        ferry_closep(&fd);
        fd = next;
    }
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening %s/%s", top, path);
    }
    return ferry_take_fd(&fd);
}

/* Copies the cache files of one directory to another; returns how many. */
static int copy_files(int from, const char *to, uid_t uid, gid_t gid, struct ferry_error *err)
{
    int listing = dup(from), n = 0;
    ferry_cleanup(closedirp) DIR *d = listing < 0 ? NULL : fdopendir(listing);

    if (!d) {
        return ferry_fail_errno(err, errno, "listing a capability cache");
    }
    for (struct dirent *e; n < FILES_MAX && (e = readdir(d));) {
        ferry_cleanup_buf struct ferry_buf data = {0};
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", to, e->d_name);

        if (!is_cache_name(e->d_name)) {
            continue;
        }
        int rc = read_at(from, e->d_name, &data, err);
        if (rc == 0) {
            rc = ferry_write_file(path, data.data, data.len, 0644, err);
        }
        if (rc == 0 && lchown(path, uid, gid) < 0) {
            rc = ferry_fail_errno(err, errno, "changing the owner of %s", path);
        }
        if (rc < 0) {
            return rc;
        }
        n++;
    }
    return n;
}

int cache_seed(const char *node_dir, const char *home, uid_t uid, gid_t gid,
               struct ferry_error *err)
{
    static const char *const levels[] = {"cache/libvirt", "cache/libvirt/qemu",
                                         "cache/libvirt/qemu/cache", IN_HOME};
    ferry_cleanup_fd int from = open_below(node_dir, "capabilities", NULL);
    ferry_cleanup_free char *to = ferry_asprintf("%s/" IN_HOME, home);

    if (from < 0) {
        return 0;
    }
    for (size_t i = 0; i < FERRY_COUNT(levels); i++) {
        ferry_cleanup_free char *path = ferry_asprintf("%s/%s", home, levels[i]);

        if ((mkdir(path, 0700) < 0 && errno != EEXIST) || lchown(path, uid, gid) < 0) {
            return ferry_fail_errno(err, errno, "making directory %s", path);
        }
    }
    int n = copy_files(from, to, uid, gid, err);
    return n < 0 ? n : 0;
}

int cache_harvest(const char *home, const char *node_dir, struct ferry_error *err)
{
    ferry_cleanup_free char *to = ferry_asprintf("%s/capabilities", node_dir);
    ferry_cleanup_free char *stamp = ferry_asprintf("%s/.complete", to);
    ferry_cleanup_fd int from = open_below(home, IN_HOME, err);

    if (from < 0) {
        return from == -FERRY_NOT_FOUND ? 0 : from;
    }
    int rc = ferry_mkdir_p(to, 0755, err);
    int n = rc < 0 ? rc : copy_files(from, to, 0, 0, err);
    if (n > 0) {
        rc = ferry_write_file(stamp, "", 0, 0644, err);
        n = rc < 0 ? rc : n;
    }
    return n;
}
