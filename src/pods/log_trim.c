#include "pods/log_trim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "pods/sandbox.h"

enum { EVERY_MS = 1000, BLOCK = 4096, STAT_BLOCK = 512, QEMU_LOGS = 8 };

struct log_trim {
    char *pods_dir;
    int stop_fd;
    pthread_t thread;
};

int64_t log_trim_head(int64_t length, int64_t taken)
{
    return taken <= LOG_TRIM_MAX || length <= LOG_TRIM_KEEP
               ? 0
               : (length - LOG_TRIM_KEEP) / BLOCK * BLOCK;
}

/* The directory may be the hypervisor's: what is there may be anything, and become another thing at
 * any time. */
static void trim(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
        !log_trim_head(st.st_size, st.st_blocks * STAT_BLOCK)) {
        return;
    }
    ferry_cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        return;
    }
    int64_t head = log_trim_head(st.st_size, st.st_blocks * STAT_BLOCK);
    if (head > 0 && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, head) < 0) {
        ferry_debug("a log cannot be cut", F_STR("name", name), F_INT("errno", errno));
    }
}

static int open_directory(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Where libvirt has what QEMU says, if it is there, without following a link anywhere. */
static int open_qemu_logs(int pod)
{
    static const char *const way[] = {"home", "cache", "libvirt", "qemu", "log"};
    ferry_cleanup_fd int fd = open_directory(pod, way[0]);

    for (size_t i = 1; i < FERRY_COUNT(way) && fd >= 0; i++) {
        int next = open_directory(fd, way[i]);

        ferry_closep(&fd);
        fd = next;
    }
    return fd < 0 ? -1 : ferry_take_fd(&fd);
}

static void trim_qemu_logs(int pod)
{
    int fd = open_qemu_logs(pod);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (fd >= 0 && !d) {
        close(fd);
    }
    for (int n = 0; d && n < QEMU_LOGS && (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            trim(fd, e->d_name);
            n++;
        }
    }
    if (d) {
        closedir(d);
    }
}

void log_trim_pod(const char *dir)
{
    ferry_cleanup_fd int pod = open_directory(AT_FDCWD, dir);
    ferry_cleanup_fd int console = pod < 0 ? -1 : open_directory(pod, "console");
    ferry_cleanup_fd int out = pod < 0 ? -1 : open_directory(pod, "out");

    if (console >= 0) {
        trim(console, "serial.log");
    }
    if (out >= 0) {
        trim(out, "log");
    } else if (pod >= 0) {
        trim(pod, "log"); /* of a version before */
    }
    if (pod >= 0) {
        trim_qemu_logs(pod);
    }
}

static void trim_all(const char *pods_dir)
{
    DIR *d = opendir(pods_dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        ferry_cleanup_free char *dir = ferry_asprintf("%s/%s", pods_dir, e->d_name);

        if (sandbox_uid_valid(e->d_name)) {
            log_trim_pod(dir);
        }
    }
    if (d) {
        closedir(d);
    }
}

static void *run(void *arg)
{
    struct log_trim *t = arg;
    struct pollfd stop = {.fd = t->stop_fd, .events = POLLIN};

    while (poll(&stop, 1, EVERY_MS) <= 0) {
        trim_all(t->pods_dir);
    }
    return NULL;
}

int log_trim_start(const char *pods_dir, struct log_trim **ret, struct ferry_error *err)
{
    struct log_trim *t = ferry_xcalloc(1, sizeof(*t));

    t->pods_dir = ferry_strdup(pods_dir);
    t->stop_fd = eventfd(0, EFD_CLOEXEC);
    int rc = t->stop_fd < 0 ? errno : pthread_create(&t->thread, NULL, run, t);
    if (rc != 0) {
        ferry_closep(&t->stop_fd);
        free(t->pods_dir);
        free(t);
        return ferry_fail_errno(err, rc, "starting a thread");
    }
    *ret = t;
    return 0;
}

void log_trim_stop(struct log_trim *t)
{
    if (!t) {
        return;
    }
    eventfd_write(t->stop_fd, 1);
    pthread_join(t->thread, NULL);
    close(t->stop_fd);
    free(t->pods_dir);
    free(t);
}
