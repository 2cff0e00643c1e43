#include "base/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

int ferry_user_find(const char *text, const char *option, const char *name, unsigned id,
                    struct ferry_user *ret, struct ferry_error *err)
{
    const char *colon = strchr(text ? text : "", ':');
    const struct passwd *pw = getpwnam(text ? text : name);
    long long uid, gid;

    if (pw) {
        *ret = (struct ferry_user){.uid = pw->pw_uid, .gid = pw->pw_gid};
        return 0;
    }
    if (!text) {
        *ret = (struct ferry_user){.uid = id, .gid = id};
        return 0;
    }
    ferry_cleanup_free char *first = colon ? ferry_strndup(text, (size_t)(colon - text)) : NULL;
    if (!colon || ferry_parse_int(first, 0, UINT32_MAX - 1, &uid, NULL) < 0 ||
        ferry_parse_int(colon + 1, 0, UINT32_MAX - 1, &gid, NULL) < 0) {
        return ferry_fail(err, FERRY_INVALID, "%s: '%s' is neither a user nor UID:GID", option,
                          text);
    }
    *ret = (struct ferry_user){.uid = (uid_t)uid, .gid = (gid_t)gid};
    return 0;
}

int ferry_user_become(const struct ferry_user *u, gid_t also, struct ferry_error *err)
{
    const struct rlimit no_core = {0, 0};

    if (geteuid() != 0 || u->uid == 0) {
        return 0;
    }
    if (setgroups(also == FERRY_NO_GROUP ? 0 : 1, &also) < 0 ||
        setresgid(u->gid, u->gid, u->gid) < 0 || setresuid(u->uid, u->uid, u->uid) < 0) {
        return ferry_fail_errno(err, errno, "becoming uid %u, gid %u", u->uid, u->gid);
    }
    /* Changing the user made the process undumpable, and with that its own /proc/self/fd, by which
     * sockets are bound and dialled, unreadable. No core may hold the key all the same. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 ||
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) {
        return ferry_fail_errno(err, errno, "giving up privileges");
    }
    return 0;
}

int ferry_user_act_as(const struct ferry_user *u, struct ferry_error *err)
{
    if (geteuid() != 0 || u->uid == 0) {
        return 0;
    }
    return setegid(u->gid) < 0 || seteuid(u->uid) < 0
               ? ferry_fail_errno(err, errno, "acting as uid %u, gid %u", u->uid, u->gid)
               : 0;
}

int ferry_user_return(struct ferry_error *err)
{
    if (getuid() != 0 || geteuid() == 0) {
        return 0;
    }
    return seteuid(0) < 0 || setegid(0) < 0 ? ferry_fail_errno(err, errno, "becoming root again")
                                            : 0;
}

/* The real user of a process by its status: who owns its directory in /proc says less, since of a
 * process that may not be dumped it is root. -1 when it is gone. */
static long uid_of(pid_t pid)
{
    char path[64];
    ferry_cleanup_buf struct ferry_buf status = {0};
    unsigned uid;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    const char *line =
        ferry_read_file(path, 65536, &status, NULL) == 0 ? strstr(status.data, "\nUid:") : NULL;
    return line && sscanf(line, "\nUid: %u", &uid) == 1 ? (long)uid : -1;
}

/* Not by seteuid(), which the C library does for all threads. */
static int act_alone_as(long uid)
{
    return (int)syscall(SYS_setresuid, -1L, uid, -1L);
}

int ferry_user_signal(int pidfd, pid_t pid, int sig, struct ferry_error *err)
{
    long uid = uid_of(pid);

    if (uid < 0) {
        return 0;
    }
    if (uid != 0 && act_alone_as(uid) < 0) {
        return ferry_fail_errno(err, errno, "signalling process %d as uid %ld", (int)pid, uid);
    }
    int failed = pidfd_send_signal(pidfd, sig, NULL, 0) < 0 ? errno : 0;
    if (uid != 0 && act_alone_as(0) < 0) {
        abort(); /* a thread that has lost its rights would fail at everything, and say other
                    reasons */
    }
    return failed && failed != ESRCH
               ? ferry_fail_errno(err, failed, "signalling process %d as uid %ld", (int)pid, uid)
               : 0;
}

bool ferry_user_map_may_be_root(const char *map, uid_t overflow, uid_t uid)
{
    if (uid == 0 || uid != overflow) {
        return uid == 0;
    }
    for (const char *line = map; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        unsigned first, outside, count;

        if (sscanf(line, "%u %u %u", &first, &outside, &count) != 3 || first == 0 || outside == 0) {
            return false;
        }
    }
    return *map != '\0';
}

bool ferry_user_may_be_root(uid_t uid)
{
    ferry_cleanup_buf struct ferry_buf map = {0}, number = {0};
    long long overflow;

    if (uid == 0) {
        return true;
    }
    if (ferry_read_file("/proc/self/uid_map", 4096, &map, NULL) < 0 || !map.len ||
        ferry_read_file("/proc/sys/kernel/overflowuid", 32, &number, NULL) < 0 || !number.len) {
        return false;
    }
    number.data[strcspn(number.data, "\n")] = '\0';
    return ferry_parse_int(number.data, 1, UINT32_MAX, &overflow, NULL) == 0 &&
           ferry_user_map_may_be_root(map.data, (uid_t)overflow, uid);
}
