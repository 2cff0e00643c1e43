#include "kvm/kvm_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kvm/kvm_guest.h"

enum { TRIES = 3, PATIENCE_MS = 3000 };

#ifdef __x86_64__

enum {
    CR0_PROTECTED = 1,
    CR0_EXTENSION = 1 << 4,
    CR0_WRITE_PROTECT = 1 << 16,
    CR4_PAE = 1 << 5,
    EFER_LONG = 1 << 8,
    EFER_LONG_ACTIVE = 1 << 10,
};
#define CR0_PAGING (UINT64_C(1) << 31)

/* All descriptors go with the process. */
struct guest {
    int vcpu;
    struct kvm_run *run;
};

static struct kvm_run *running; /* of the one guest of this process */

/* Also when it comes right before the guest is entered. */
static void on_alarm(int signal)
{
    (void)signal;
    running->immediate_exit = 1;
}

static struct kvm_segment segment(uint16_t selector, bool is_code)
{
    return (struct kvm_segment){
        .limit = UINT32_MAX,
        .selector = selector,
        .type = is_code ? 11 : 3, /* executed or written, and accessed */
        .present = 1,
        .s = 1,
        .l = is_code,
        .db = !is_code,
        .g = 1,
    };
}

static int set_registers(int vcpu)
{
    struct kvm_sregs s;
    struct kvm_regs r = {.rip = KVM_GUEST_CODE, .rsp = KVM_GUEST_STACK, .rflags = 2};

    if (ioctl(vcpu, KVM_GET_SREGS, &s) < 0) {
        return -1;
    }
    s.cs = segment(KVM_GUEST_CODE_SEGMENT, true);
    s.ds = s.es = s.fs = s.gs = s.ss = segment(KVM_GUEST_DATA_SEGMENT, false);
    s.gdt.base = KVM_GUEST_GDT;
    s.gdt.limit = KVM_GUEST_GDT_BYTES - 1;
    s.cr3 = KVM_GUEST_PAGES;
    s.cr4 = CR4_PAE;
    s.cr0 = CR0_PROTECTED | CR0_EXTENSION | CR0_WRITE_PROTECT | CR0_PAGING;
    s.efer = EFER_LONG | EFER_LONG_ACTIVE;
    return ioctl(vcpu, KVM_SET_SREGS, &s) < 0 || ioctl(vcpu, KVM_SET_REGS, &r) < 0 ? -1 : 0;
}

static int make_guest(int kvm, struct guest *ret)
{
    int vm = ioctl(kvm, KVM_CREATE_VM, 0);
    int room = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    void *memory =
        mmap(NULL, KVM_GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (vm < 0 || room < (int)sizeof(struct kvm_run) || memory == MAP_FAILED) {
        return -1;
    }
    struct kvm_userspace_memory_region region = {.memory_size = KVM_GUEST_BYTES,
                                                 .userspace_addr = (uintptr_t)memory};
    kvm_guest_write(memory);
    if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0 ||
        (ret->vcpu = ioctl(vm, KVM_CREATE_VCPU, 0)) < 0) {
        return -1;
    }
    ret->run = mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_SHARED, ret->vcpu, 0);
    return ret->run == MAP_FAILED ? -1 : 0;
}

/* Once; with errno when it did not stop by itself. */
static int run_guest(const struct guest *g, struct kvm_answer *a)
{
    struct itimerval limit = {.it_value = {.tv_usec = KVM_MOST_MS * 1000}}, none = {0};
    struct kvm_regs r;

    running = g->run;
    g->run->immediate_exit = 0;
    setitimer(ITIMER_REAL, &limit, NULL);
    int64_t begin = ferry_now_ns();
    int rc = ioctl(g->vcpu, KVM_RUN, 0);
    int errnum = errno;
    a->took_ns = ferry_now_ns() - begin;
    setitimer(ITIMER_REAL, &none, NULL);
    if (rc < 0) {
        errno = errnum == EINTR ? ETIME : errnum;
        return -1;
    }
    if (ioctl(g->vcpu, KVM_GET_REGS, &r) < 0) {
        return -1;
    }
    a->rbx = r.rbx;
    a->exit_reason = g->run->exit_reason;
    return 0;
}

/* A host that is busy may take its time from the guest, so that the best of some tries counts. */
static int run_some(const struct guest *g, struct kvm_answer *a)
{
    struct sigaction act = {.sa_handler = on_alarm};

    sigaction(SIGALRM, &act, NULL);
    for (int i = 0; i < TRIES; i++) {
        if (set_registers(g->vcpu) < 0 ||
            (run_guest(g, a) < 0 && (errno != ETIME || i == TRIES - 1))) {
            return -1;
        }
        if (g->run->exit_reason != KVM_EXIT_INTR && a->took_ns <= KVM_MOST_MS * FERRY_NS_PER_MS) {
            return 0;
        }
    }
    return 0;
}

static void try_device(const char *device, struct kvm_answer *a)
{
    struct guest g = {0};
    int kvm = open(device, O_RDWR | O_CLOEXEC);

    *a = (struct kvm_answer){.stage = KVM_STAGE_OPEN};
    if (kvm < 0) {
        a->errnum = errno;
        return;
    }
    a->stage = KVM_STAGE_VERSION;
    a->version = ioctl(kvm, KVM_GET_API_VERSION, 0);
    if (a->version != KVM_API_VERSION) {
        a->errnum = a->version < 0 ? errno : 0;
        return;
    }
    a->stage = KVM_STAGE_MAKE;
    if (make_guest(kvm, &g) < 0 || set_registers(g.vcpu) < 0) {
        a->errnum = errno;
        return;
    }
    a->stage = KVM_STAGE_RUN;
    if (run_some(&g, a) < 0) {
        a->errnum = errno;
        return;
    }
    a->stage = KVM_STAGE_STOPPED;
}

#else

/* Its instructions are another's: no guest, no answer. */
static void try_device(const char *device, struct kvm_answer *a)
{
    (void)device;
    *a = (struct kvm_answer){.stage = KVM_STAGE_MAKE, .errnum = ENOTSUP};
}

#endif

/* The child's whole answer, or what kept it: -1 with errno. */
static int hear(int fd, struct kvm_answer *ret)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t deadline = ferry_now_ns() + PATIENCE_MS * FERRY_NS_PER_MS;
    int left, n;

    do {
        left = ferry_ms_left(deadline);
        n = poll(&p, 1, left);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        errno = ETIME;
        return -1;
    }
    ssize_t got = n < 0 ? -1 : read(fd, ret, sizeof(*ret));
    if (got >= 0 && got != (ssize_t)sizeof(*ret)) {
        errno = ECHILD; /* it died over it */
    }
    return got == (ssize_t)sizeof(*ret) ? 0 : -1;
}

void kvm_probe(const char *device, struct kvm_answer *ret)
{
    int fds[2];

    *ret = (struct kvm_answer){.stage = KVM_STAGE_RUN};
    if (pipe2(fds, O_CLOEXEC) < 0) {
        ret->errnum = errno;
        return;
    }
    ferry_cleanup_fd int from = fds[0];
    pid_t pid = fork();
    if (pid == 0) {
        struct kvm_answer a;

        try_device(device, &a);
        _exit(write(fds[1], &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : 1);
    }
    int errnum = errno;
    close(fds[1]);
    if (pid < 0) {
        ret->errnum = errnum;
        return;
    }
    if (hear(from, ret) < 0) {
        *ret = (struct kvm_answer){.stage = KVM_STAGE_RUN, .errnum = errno};
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
