#include "apiserver/serve/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

struct audit_log {
    char *path;
    int64_t max_bytes;
    int max_backups;
    pthread_mutex_t lock; /* what follows */
    int fd;
    int64_t bytes;
    bool broken; /* said once, until it works again */
};

static int open_file(struct audit_log *l, struct ferry_error *err)
{
    struct stat st;
    ferry_cleanup_fd int fd =
        open(l->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fchmod(fd, 0600) < 0) {
        return ferry_fail_errno(err, fd < 0 || errno ? errno : EINVAL, "audit log %s", l->path);
    }
    ferry_closep(&l->fd);
    l->fd = ferry_take_fd(&fd);
    l->bytes = st.st_size;
    return 0;
}

int audit_log_open(const char *path, int64_t max_bytes, int max_backups, struct audit_log **ret,
                   struct ferry_error *err)
{
    struct audit_log *l = ferry_xcalloc(1, sizeof(*l));

    l->path = ferry_strdup(path);
    l->max_bytes = max_bytes;
    l->max_backups = max_backups;
    l->fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    int rc = open_file(l, err);
    if (rc < 0) {
        audit_log_close(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void audit_log_close(struct audit_log *l)
{
    if (l) {
        ferry_closep(&l->fd);
        pthread_mutex_destroy(&l->lock);
        free(l->path);
        free(l);
    }
}

/* The oldest goes, all others move by one. */
static int rotate(struct audit_log *l, struct ferry_error *err)
{
    for (int i = l->max_backups; i > 0; i--) {
        ferry_cleanup_free char *to = ferry_asprintf("%s.%d", l->path, i);
        ferry_cleanup_free char *from =
            i > 1 ? ferry_asprintf("%s.%d", l->path, i - 1) : ferry_strdup(l->path);

        if (rename(from, to) < 0 && errno != ENOENT) {
            return ferry_fail_errno(err, errno, "moving %s", from);
        }
    }
    if (l->max_backups == 0 && unlink(l->path) < 0 && errno != ENOENT) {
        return ferry_fail_errno(err, errno, "removing %s", l->path);
    }
    return open_file(l, err);
}

static int write_locked(struct audit_log *l, const char *line, size_t len, struct ferry_error *err)
{
    if (l->bytes > 0 && l->bytes + (int64_t)len > l->max_bytes) {
        int rc = rotate(l, err);

        if (rc < 0) {
            return rc;
        }
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = write(l->fd, line + done, len - done);

        if (n < 0 && errno != EINTR) {
            return ferry_fail_errno(err, errno, "writing to %s", l->path);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    l->bytes += (int64_t)len;
    return 0;
}

void audit_log_write(struct audit_log *l, const char *line, size_t len)
{
    struct ferry_error err;

    pthread_mutex_lock(&l->lock);
    int rc = write_locked(l, line, len, &err);
    if (rc < 0 && !l->broken) {
        ferry_error("an audit event was lost", F_ERR(&err));
    }
    l->broken = rc < 0;
    pthread_mutex_unlock(&l->lock);
}
