/* Descriptors, files and unix sockets. All descriptors are close-on-exec from birth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/str.h"

int ferry_set_nonblock(int fd, bool on, struct ferry_error *err);
int ferry_write_all(int fd, const void *data, size_t n, struct ferry_error *err);

/* Whole file into `ret` (which must be empty); more than `max` bytes is an error. */
int ferry_read_file(const char *path, size_t max, struct ferry_buf *ret, struct ferry_error *err);

/* Complete or not at all, durable when it returns: temporary file, fsync, rename. */
int ferry_write_file(const char *path, const void *data, size_t n, mode_t mode,
                     struct ferry_error *err);
/* The same, and nobody sees it before it is whose it shall be; -1 leaves what it would be. */
int ferry_write_file_of(const char *path, const void *data, size_t n, mode_t mode, uid_t uid,
                        gid_t gid, struct ferry_error *err);

int ferry_mkdir_p(const char *path, mode_t mode, struct ferry_error *err);

/* Removes a directory tree without following links. Missing is fine. */
int ferry_remove_tree(const char *path, struct ferry_error *err);

/* Unix sockets are bound and dialled through a directory descriptor: the path may be of any length,
 * its last component at most 80 bytes. A stale socket at `path` is replaced. */
int ferry_unix_listen(const char *path, mode_t mode, int backlog, struct ferry_error *err);
/* Blocking descriptor. Retries while the listener's backlog is full, until `deadline_ns`. What is
 * at `path` is the socket itself: a link that somebody who may write to its directory put there is
 * refused, class DENIED, and so is anything that was mounted over it. */
int ferry_unix_connect(const char *path, int64_t deadline_ns, struct ferry_error *err);
/* The same, and the socket was made by `owner`. */
int ferry_unix_connect_owned(const char *path, uid_t owner, int64_t deadline_ns,
                             struct ferry_error *err);

struct ferry_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};
int ferry_unix_peer(int fd, struct ferry_peer *ret, struct ferry_error *err);

/* Number of sockets passed in by systemd's socket-activation protocol (LISTEN_FDS, from
 * descriptor 3 on); sets close-on-exec on them. Ignores LISTEN_PID of another process. */
int ferry_listen_fds(void);
enum { FERRY_LISTEN_FDS_START = 3 };
