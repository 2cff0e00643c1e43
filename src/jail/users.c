#include "jail/users.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

static int write_map(const char *path, const char *text, struct ferry_error *err)
{
    ferry_cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        return ferry_fail_errno(err, errno, "writing %s", path);
    }
    return 0;
}

int jail_users_enter(unsigned uid, unsigned gid, struct ferry_error *err)
{
    char uids[64], gids[64];
    int before = prctl(PR_GET_DUMPABLE);

    snprintf(uids, sizeof(uids), "%u %u 1\n", uid, uid);
    snprintf(gids, sizeof(gids), "%u %u 1\n", gid, gid);
    if (unshare(CLONE_NEWUSER) < 0) {
        return ferry_fail_errno(err, errno, "making a user namespace");
    }
    /* The files of a process that gave up root are root's, until it says otherwise. */
    prctl(PR_SET_DUMPABLE, 1);
    int rc = write_map("/proc/self/setgroups", "deny", err);
    if (rc == 0) {
        rc = write_map("/proc/self/uid_map", uids, err);
    }
    if (rc == 0) {
        rc = write_map("/proc/self/gid_map", gids, err);
    }
    prctl(PR_SET_DUMPABLE, before == 1);
    return rc;
}

int jail_users_try(unsigned uid, unsigned gid, struct ferry_error *err)
{
    int status;
    pid_t child = fork();

    if (child < 0) {
        return ferry_fail_errno(err, errno, "trying a user namespace");
    }
    if (child == 0) {
        struct ferry_error why;

        if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) {
            _exit(errno);
        }
        _exit(jail_users_enter(uid, gid, &why) < 0 ? why.sys : 0);
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return ferry_fail_errno(err, errno, "waiting for a user namespace to be tried");
        }
    }
    int why = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return why ? ferry_fail_errno(err, why, "making a user namespace for uid %u", uid) : 0;
}
