#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

void ferry_closep(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;

        close(*fd);
        errno = saved;
    }
}

int ferry_set_nonblock(int fd, bool on, struct ferry_error *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0) {
        return ferry_fail_errno(err, errno, "setting the blocking mode of descriptor %d", fd);
    }
    return 0;
}

int ferry_write_all(int fd, const void *data, size_t n, struct ferry_error *err)
{
    const char *p = data;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            return ferry_fail_errno(err, errno, "writing");
        }
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

int ferry_read_file(const char *path, size_t max, struct ferry_buf *ret, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ferry_cleanup_buf struct ferry_buf b = {0};

    if (fd < 0) {
        return ferry_fail_errno(err, errno, "reading %s", path);
    }
    for (;;) {
        ferry_buf_reserve(&b, 4096);
        ssize_t n = read(fd, b.data + b.len, b.cap - b.len - 1);

        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return ferry_fail_errno(err, errno, "reading %s", path);
        }
        if (n == 0) {
            break;
        }
        b.len += (size_t)n;
        b.data[b.len] = '\0';
        if (b.len > max) {
            return ferry_fail(err, FERRY_INVALID, "reading %s: larger than %zu bytes", path, max);
        }
    }
    *ret = b;
    b = (struct ferry_buf){0};
    return 0;
}

static int split_path(const char *path, char **ret_dir, const char **ret_name,
                      struct ferry_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (!*name || strlen(name) > 80) {
        return ferry_fail(err, FERRY_INVALID, "%s: the last part must have 1 to 80 bytes", path);
    }
    if (!slash) {
        *ret_dir = ferry_strdup(".");
    } else {
        *ret_dir = slash == path ? ferry_strdup("/") : ferry_strndup(path, (size_t)(slash - path));
    }
    *ret_name = name;
    return 0;
}

struct new_file {
    mode_t mode;
    uid_t uid;
    gid_t gid;
};

static int write_and_sync(int fd, const void *data, size_t n, const struct new_file *as,
                          const char *path, struct ferry_error *err)
{
    bool give = as->uid != (uid_t)-1 || as->gid != (gid_t)-1;

    if (ferry_write_all(fd, data, n, err) < 0) {
        return ferry_wrap(err, "%s", path);
    }
    if (give && fchown(fd, as->uid, as->gid) < 0) {
        return ferry_fail_errno(err, errno, "giving %s its owner", path);
    }
    if (fchmod(fd, as->mode) < 0 || fsync(fd) < 0) {
        return ferry_fail_errno(err, errno, "writing %s", path);
    }
    return 0;
}

int ferry_write_file(const char *path, const void *data, size_t n, mode_t mode,
                     struct ferry_error *err)
{
    return ferry_write_file_of(path, data, n, mode, (uid_t)-1, (gid_t)-1, err);
}

int ferry_write_file_of(const char *path, const void *data, size_t n, mode_t mode, uid_t uid,
                        gid_t gid, struct ferry_error *err)
{
    const struct new_file as = {.mode = mode, .uid = uid, .gid = gid};
    ferry_cleanup_free char *dir = NULL;
    const char *name;

    if (split_path(path, &dir, &name, err) < 0) {
        return -FERRY_INVALID;
    }
    ferry_cleanup_free char *tmp = ferry_asprintf("%s/.%s.XXXXXX", dir, name);
    ferry_cleanup_fd int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "creating a file beside %s", path);
    }
    int rc = write_and_sync(fd, data, n, &as, path, err);
    if (rc == 0 && rename(tmp, path) < 0) {
        rc = ferry_fail_errno(err, errno, "replacing %s", path);
    }
    if (rc < 0) {
        unlink(tmp);
        return rc;
    }
    ferry_cleanup_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd >= 0) {
        fsync(dirfd);
    }
    return 0;
}

int ferry_mkdir_p(const char *path, mode_t mode, struct ferry_error *err)
{
    ferry_cleanup_free char *p = ferry_strdup(path);

    for (char *s = p + 1; *s; s++) {
        if (*s != '/') {
            continue;
        }
        *s = '\0';
        if (mkdir(p, 0755) < 0 && errno != EEXIST) {
            return ferry_fail_errno(err, errno, "making directory %s", p);
        }
        *s = '/';
    }
    if (mkdir(p, mode) < 0 && errno != EEXIST) {
        return ferry_fail_errno(err, errno, "making directory %s", p);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int ferry_remove_tree(const char *path, struct ferry_error *err)
{
    /* FTW_MOUNT: never descend into something mounted below. */
    if (nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT) {
        return ferry_fail_errno(err, errno, "removing %s", path);
    }
    return 0;
}

/* Address of `name` in the directory `dirfd`, short whatever the directory's own path is. */
static int unix_address(int dirfd, const char *name, struct sockaddr_un *sa)
{
    *sa = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s", dirfd, name);
}

static int open_parent(const char *path, const char **ret_name, struct ferry_error *err)
{
    ferry_cleanup_free char *dir = NULL;

    if (split_path(path, &dir, ret_name, err) < 0) {
        return -FERRY_INVALID;
    }
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "opening directory %s", dir);
    }
    return fd;
}

int ferry_unix_listen(const char *path, mode_t mode, int backlog, struct ferry_error *err)
{
    const char *name;
    ferry_cleanup_fd int dirfd = open_parent(path, &name, err);
    struct sockaddr_un sa;
    struct stat st;

    if (dirfd < 0) {
        return dirfd;
    }
    ferry_cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return ferry_fail_errno(err, errno, "making a unix socket");
    }
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode)) {
        unlinkat(dirfd, name, 0);
    }
    unix_address(dirfd, name, &sa);
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
        return ferry_fail_errno(err, errno, "binding unix socket %s", path);
    }
    /* Not through a link that somebody who may write to the directory put in its place. */
    if (fchmodat(dirfd, name, mode, AT_SYMLINK_NOFOLLOW) < 0 || listen(fd, backlog) < 0) {
        return ferry_fail_errno(err, errno, "listening on unix socket %s", path);
    }
    return ferry_take_fd(&fd);
}

/* The socket itself, so that what was checked is what is connected to. `owner` may be NULL. */
static int open_socket(const char *path, const uid_t *owner, struct ferry_error *err)
{
    const char *name = NULL; /* gcc does not see that it is set where the parent is open */
    ferry_cleanup_fd int dirfd = open_parent(path, &name, err);
    struct stat dir, st;

    if (dirfd < 0) {
        return dirfd;
    }
    ferry_cleanup_fd int fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || fstat(dirfd, &dir) < 0) {
        return ferry_fail_errno(err, errno, "connecting to unix socket %s", path);
    }
    if (!S_ISSOCK(st.st_mode) || st.st_dev != dir.st_dev) {
        return ferry_fail(err, FERRY_DENIED, "connecting to unix socket %s: it is %s", path,
                          S_ISLNK(st.st_mode)    ? "a link"
                          : S_ISSOCK(st.st_mode) ? "mounted there"
                                                 : "no socket");
    }
    if (owner && st.st_uid != *owner) {
        return ferry_fail(err, FERRY_DENIED,
                          "connecting to unix socket %s: it belongs to uid %u, not to %u", path,
                          st.st_uid, *owner);
    }
    return ferry_take_fd(&fd);
}

static int unix_connect(const char *path, const uid_t *owner, int64_t deadline_ns,
                        struct ferry_error *err)
{
    ferry_cleanup_fd int place = open_socket(path, owner, err);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    if (place < 0) {
        return place;
    }
    snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", place);
    for (;;) {
        /* Non-blocking, so that a full backlog is EAGAIN instead of a wait without end. */
        ferry_cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            return ferry_fail_errno(err, errno, "making a unix socket");
        }
        if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
            int rc = ferry_set_nonblock(fd, false, err);

            return rc < 0 ? rc : ferry_take_fd(&fd);
        }
        if (errno != EAGAIN && errno != EINTR) {
            return ferry_fail_errno(err, errno, "connecting to unix socket %s", path);
        }
        if (ferry_ms_left(deadline_ns) == 0) {
            return ferry_fail_errno(err, ETIMEDOUT, "connecting to unix socket %s", path);
        }
        ferry_sleep_ms(5);
    }
}

int ferry_unix_connect(const char *path, int64_t deadline_ns, struct ferry_error *err)
{
    return unix_connect(path, NULL, deadline_ns, err);
}

int ferry_unix_connect_owned(const char *path, uid_t owner, int64_t deadline_ns,
                             struct ferry_error *err)
{
    return unix_connect(path, &owner, deadline_ns, err);
}

int ferry_unix_peer(int fd, struct ferry_peer *ret, struct ferry_error *err)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
        return ferry_fail_errno(err, errno, "reading the credentials of a unix peer");
    }
    *ret = (struct ferry_peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
    return 0;
}

enum { LISTEN_FDS_MAX = 1 << 16 }; /* a descriptor store may keep many */

int ferry_listen_fds(void)
{
    const char *fds = getenv("LISTEN_FDS");
    const char *pid = getenv("LISTEN_PID");
    long long n = 0, owner = 0;

    if (!fds || ferry_parse_int(fds, 0, LISTEN_FDS_MAX, &n, NULL) < 0) {
        return 0;
    }
    if (pid && (ferry_parse_int(pid, 1, INT32_MAX, &owner, NULL) < 0 || owner != getpid())) {
        return 0;
    }
    for (int i = 0; i < n; i++) {
        fcntl(FERRY_LISTEN_FDS_START + i, F_SETFD, FD_CLOEXEC);
    }
    return (int)n;
}
