#include "jail/refused.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "base/count.h"
#include "jail/allowed.h"

#define ALWAYS(call)                                                                               \
    {                                                                                              \
        call, EPERM, -1, 0, 0                                                                      \
    }
#define FLAG(call, argument, flag)                                                                 \
    {                                                                                              \
        call, EPERM, argument, flag, flag                                                          \
    }
#define TRACE(request)                                                                             \
    {                                                                                              \
        "ptrace", EPERM, 0, 0xffffffffULL, request                                                 \
    }
#define TERMINAL(request)                                                                          \
    {                                                                                              \
        "ioctl", EPERM, 1, 0xffffffffULL, request                                                  \
    }

static const struct jail_call refused[] = {
    /* what is mounted where, and other namespaces */
    ALWAYS("mount"),
    ALWAYS("umount"),
    ALWAYS("umount2"),
    ALWAYS("pivot_root"),
    ALWAYS("chroot"),
    ALWAYS("move_mount"),
    ALWAYS("open_tree"),
    ALWAYS("fsopen"),
    ALWAYS("fsconfig"),
    ALWAYS("fsmount"),
    ALWAYS("fspick"),
    ALWAYS("mount_setattr"),
    ALWAYS("setns"),
    ALWAYS("unshare"),
    FLAG("clone", 0, CLONE_NEWNS),
    FLAG("clone", 0, CLONE_NEWUSER),
    FLAG("clone", 0, CLONE_NEWPID),
    FLAG("clone", 0, CLONE_NEWNET),
    FLAG("clone", 0, CLONE_NEWIPC),
    FLAG("clone", 0, CLONE_NEWUTS),
    FLAG("clone", 0, CLONE_NEWCGROUP),
    /* Its flags are in memory, where a filter cannot look; libraries then use clone(). */
    {"clone3", ENOSYS, -1, 0, 0},
    /* the kernel and its code */
    ALWAYS("init_module"),
    ALWAYS("finit_module"),
    ALWAYS("delete_module"),
    ALWAYS("create_module"),
    ALWAYS("query_module"),
    ALWAYS("get_kernel_syms"),
    ALWAYS("kexec_load"),
    ALWAYS("kexec_file_load"),
    ALWAYS("bpf"),
    ALWAYS("perf_event_open"),
    ALWAYS("io_uring_setup"),
    ALWAYS("io_uring_enter"),
    ALWAYS("io_uring_register"),
    ALWAYS("syslog"),
    ALWAYS("reboot"),
    ALWAYS("modify_ldt"),
    ALWAYS("uselib"),
    ALWAYS("ustat"),
    ALWAYS("sysfs"),
    ALWAYS("_sysctl"),
    ALWAYS("vm86"),
    ALWAYS("vm86old"),
    ALWAYS("nfsservctl"),
    ALWAYS("lookup_dcookie"),
    /* the machine */
    ALWAYS("iopl"),
    ALWAYS("ioperm"),
    ALWAYS("swapon"),
    ALWAYS("swapoff"),
    ALWAYS("settimeofday"),
    ALWAYS("clock_settime"),
    ALWAYS("clock_settime64"),
    ALWAYS("clock_adjtime"),
    ALWAYS("clock_adjtime64"),
    ALWAYS("adjtimex"),
    ALWAYS("stime"),
    ALWAYS("sethostname"),
    ALWAYS("setdomainname"),
    ALWAYS("acct"),
    ALWAYS("quotactl"),
    ALWAYS("quotactl_fd"),
    ALWAYS("vhangup"),
    /* keys, files and processes of others */
    ALWAYS("add_key"),
    ALWAYS("request_key"),
    ALWAYS("keyctl"),
    ALWAYS("open_by_handle_at"),
    ALWAYS("name_to_handle_at"),
    ALWAYS("process_vm_readv"),
    ALWAYS("process_vm_writev"),
    ALWAYS("process_madvise"),
    ALWAYS("process_mrelease"),
    ALWAYS("pidfd_getfd"),
    ALWAYS("migrate_pages"),
    ALWAYS("move_pages"),
    ALWAYS("kcmp"),
    ALWAYS("fanotify_init"),

#ifdef JAIL_SANITIZED /* all but what stops a thread and lets it go on */
    TRACE(PTRACE_TRACEME),
    TRACE(PTRACE_PEEKTEXT),
    TRACE(PTRACE_PEEKDATA),
    TRACE(PTRACE_PEEKUSER),
    TRACE(PTRACE_POKETEXT),
    TRACE(PTRACE_POKEDATA),
    TRACE(PTRACE_POKEUSER),
    TRACE(PTRACE_SEIZE),
    TRACE(PTRACE_SETREGSET),
    TRACE(PTRACE_SETOPTIONS),
#else
    ALWAYS("ptrace"),
#endif
    /* words put into somebody's terminal */
    TERMINAL(TIOCSTI),
    TERMINAL(0x541cULL /* TIOCLINUX */),
};

const struct jail_call *jail_refused(size_t *ret_n)
{
    *ret_n = FERRY_COUNT(refused);
    return refused;
}

static int refuse(scmp_filter_ctx ctx, const struct jail_call *c, struct ferry_error *err)
{
    int call = seccomp_syscall_resolve_name(c->name);

    /* One that this machine does not have cannot be made either. */
    if (call == __NR_SCMP_ERROR || call < 0) {
        return 0;
    }
    struct scmp_arg_cmp values = {.arg = (unsigned)c->argument,
                                  .op = SCMP_CMP_MASKED_EQ,
                                  .datum_a = c->mask,
                                  .datum_b = c->value};
    int rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((unsigned)c->errnum), call,
                                    c->argument < 0 ? 0 : 1, &values);
    return rc < 0 ? ferry_fail_errno(err, -rc, "refusing system call %s", c->name) : 0;
}

/* Families of sockets and protocols of netlink, by number. */
enum { FAMILIES = 64, PROTOCOLS = 32 };

static bool is_family(int family)
{
    return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static bool is_protocol(int protocol)
{
    return protocol == NETLINK_ROUTE || protocol == NETLINK_KOBJECT_UEVENT ||
           protocol == NETLINK_GENERIC;
}

/* Others are ways to the host, or parts of the kernel that a guest's backend never needs. */
static int refuse_sockets(scmp_filter_ctx ctx, struct ferry_error *err)
{
    const int call = SCMP_SYS(socket);
    int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), call, 1,
                              SCMP_A0_32(SCMP_CMP_GE, FAMILIES));

    for (int f = 0; rc == 0 && f < FAMILIES; f++) {
        rc = is_family(f) ? 0
                          : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), call, 1,
                                             SCMP_A0_32(SCMP_CMP_EQ, (unsigned)f));
    }
    for (int p = 0; rc == 0 && p < PROTOCOLS; p++) {
        rc = is_protocol(p) ? 0
                            : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), call, 2,
                                               SCMP_A0_32(SCMP_CMP_EQ, AF_NETLINK),
                                               SCMP_A2_32(SCMP_CMP_EQ, (unsigned)p));
    }
    return rc < 0 ? ferry_fail_errno(err, -rc, "refusing kinds of sockets") : 0;
}

int jail_close(struct ferry_error *err)
{
    size_t n;
    const struct jail_call *calls = jail_refused(&n);
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

    if (!ctx) {
        return ferry_fail(err, FERRY_FATAL, "making a filter of system calls");
    }
    /* Calls of another architecture (32 bit) would go past all of this. */
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
    rc = rc < 0 ? ferry_fail_errno(err, -rc, "making a filter of system calls") : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = refuse(ctx, &calls[i], err);
    }
    rc = rc < 0 ? rc : refuse_sockets(ctx, err);
    if (rc == 0) {
        rc = seccomp_load(ctx);
        rc = rc < 0 ? ferry_fail_errno(err, -rc, "loading the filter of system calls") : 0;
    }
    seccomp_release(ctx);
    return rc;
}
