#include "jail/allowed.h"

#include <errno.h>
#include <seccomp.h>

#include "base/count.h"

/* By what they are about. A name that an architecture does not know is left out there. */
static const char *const allowed[] = {
    /* files */
    "access", "chdir", "chmod", "chown", "chown32", "close", "close_range", "copy_file_range",
    "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fadvise64_64",
    "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat",
    "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
    "fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
    "ftruncate64", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "ioctl", "lchown",
    "lchown32", "lgetxattr", "link", "linkat", "listxattr", "llistxattr", "_llseek", "lremovexattr",
    "lseek", "lsetxattr", "lstat", "lstat64", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat",
    "open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64",
    "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "removexattr",
    "rename", "renameat", "renameat2", "rmdir", "sendfile", "sendfile64", "setxattr", "splice",
    "stat", "stat64", "statfs", "statfs64", "statx", "symlink", "symlinkat", "sync_file_range",
    "sync_file_range2", "syncfs", "truncate", "truncate64", "umask", "unlink", "unlinkat", "utime",
    "utimensat", "utimensat_time64", "utimes", "write", "writev", "inotify_add_watch",
    "inotify_init", "inotify_init1", "inotify_rm_watch",
    /* asynchronous I/O as disks with io='native' have it */
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup",
    "io_submit", "ioprio_get", "ioprio_set",
    /* memory; where a guest is tied to nodes of it (NUMA); what a move by post-copy needs */
    "brk", "get_mempolicy", "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mlock",
    "mlock2", "mlockall", "mmap", "mmap2", "mprotect", "mremap", "msync", "munlock", "munlockall",
    "munmap", "set_mempolicy", "set_mempolicy_home_node", "userfaultfd",
    /* waiting */
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
    "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "_newselect", "pause", "poll", "ppoll",
    "ppoll_time64", "pselect6", "pselect6_time64", "select", "signalfd", "signalfd4",
    "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64",
    /* sockets; which families, and which of netlink, says refused.c */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recv", "recvfrom", "recvmmsg", "recvmmsg_time64", "recvmsg", "send", "sendmmsg", "sendmsg",
    "sendto", "setsockopt", "shutdown", "socket", "socketcall", "socketpair",
    /* processes and threads; namespaces are refused by refused.c */
    "alarm", "arch_prctl", "capget", "capset", "clone", "execve", "execveat", "exit", "exit_group",
    "fork", "futex", "futex_time64", "futex_waitv", "getegid", "getegid32", "geteuid", "geteuid32",
    "getgid", "getgid32", "getgroups", "getgroups32", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit",
    "get_robust_list", "getrusage", "getsid", "get_thread_area", "gettid", "getuid", "getuid32",
    "kill", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "restart_syscall", "rseq",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "seccomp",
    "setfsgid", "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32", "setgroups",
    "setgroups32", "setpgid", "setpriority", "setregid", "setregid32", "setresgid", "setresgid32",
    "setresuid", "setresuid32", "setreuid", "setreuid32", "setrlimit", "set_robust_list", "setsid",
    "set_thread_area", "set_tid_address", "setuid", "setuid32", "set_tls", "cacheflush",
    "sigaltstack", "sigreturn", "tgkill", "tkill", "ugetrlimit", "vfork", "wait4", "waitid",
    "waitpid",
    /* where and how threads run */
    "getcpu", "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getscheduler", "sched_rr_get_interval",
    "sched_rr_get_interval_time64", "sched_setaffinity", "sched_setattr", "sched_setparam",
    "sched_setscheduler", "sched_yield",
    /* time and the host */
    "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64", "clock_nanosleep",
    "clock_nanosleep_time64", "getitimer", "getrandom", "gettimeofday", "nanosleep", "setitimer",
    "sysinfo", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_gettime64", "timer_settime", "timer_settime64", "times", "uname",
#ifdef JAIL_SANITIZED
    "ptrace", /* how the leak sanitizer stops threads at an exit; refused.c has what it may do */
#endif
};

const char *const *jail_allowed(size_t *ret_n)
{
    *ret_n = FERRY_COUNT(allowed);
    return allowed;
}

static int add_all(scmp_filter_ctx ctx, struct ferry_error *err)
{
    for (size_t i = 0; i < FERRY_COUNT(allowed); i++) {
        int call = seccomp_syscall_resolve_name(allowed[i]);
        int rc = call < 0 ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 0);

        if (rc < 0) {
            return ferry_fail_errno(err, -rc, "allowing system call %s", allowed[i]);
        }
    }
    return 0;
}

int jail_allow(struct ferry_error *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));

    if (!ctx) {
        return ferry_fail(err, FERRY_FATAL, "making a filter of system calls");
    }
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    if (rc == 0) { /* a tree in place of a list: as many steps for each call */
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    rc = rc < 0 ? ferry_fail_errno(err, -rc, "making a filter of system calls") : add_all(ctx, err);
    if (rc == 0) {
        rc = seccomp_load(ctx);
        rc = rc < 0 ? ferry_fail_errno(err, -rc, "loading the filter of system calls") : 0;
    }
    seccomp_release(ctx);
    return rc;
}
