#include "pods/pod_netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

static char *path_in(const char *dir)
{
    return ferry_asprintf("%s/netns", dir);
}

static bool is_namespace(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

static int raise_loopback(struct ferry_error *err)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    ferry_cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0
               ? ferry_fail_errno(err, errno, "bringing up lo in a pod's network namespace")
               : 0;
}

struct making {
    const char *path;
    struct ferry_error *err;
    int rc;
};

/* In a thread of its own: the namespace that it changes to ends with it. */
static void *make(void *arg)
{
    struct making *m = arg;

    if (unshare(CLONE_NEWNET) < 0) {
        m->rc = ferry_fail_errno(m->err, errno, "making a network namespace");
    } else {
        m->rc = raise_loopback(m->err);
    }
    if (m->rc == 0 && mount("/proc/thread-self/ns/net", m->path, NULL, MS_BIND, NULL) < 0) {
        m->rc = ferry_fail_errno(m->err, errno, "keeping a network namespace at %s", m->path);
    }
    return NULL;
}

int pod_netns_make(const char *dir, char **ret_path, struct ferry_error *err)
{
    ferry_cleanup_free char *path = path_in(dir);
    struct making m = {.path = path, .err = err};
    pthread_t thread;

    pod_netns_remove(dir);
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "making %s", path);
    }
    int code = pthread_create(&thread, NULL, make, &m);
    if (code) {
        return ferry_fail_errno(err, code, "starting a thread to make %s", path);
    }
    pthread_join(thread, NULL);
    if (m.rc == 0) {
        *ret_path = ferry_take_ptr(path);
    }
    return m.rc;
}

char *pod_netns_path(const char *dir)
{
    ferry_cleanup_free char *path = path_in(dir);

    return is_namespace(path) ? ferry_take_ptr(path) : NULL;
}

void pod_netns_remove(const char *dir)
{
    ferry_cleanup_free char *path = path_in(dir);

    if (is_namespace(path) && umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) {
        ferry_warn("cannot unmount a pod's network namespace", F_STR("path", path),
                   F_INT("errno", errno));
        return;
    }
    unlink(path);
}
